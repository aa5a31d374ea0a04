package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The custom resources of the tutorial on Experimentals: the first and the
// second form of its Ansible variant, and that of its Go variant.
func TestExperimental_Tutorial(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	before := waitNamespace(env)

	env.KubectlWith(`
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata:
  name: experimental
  annotations: {ansible.operator-sdk/reconcile-period: "30s"}
spec: {is_public: True}
`, "apply", "-f", "-")
	first := harness.MakeCR(harness.Experimental, "experimental").Obj()
	env.WaitRevision(first, 1)
	waitRunning(env, "experimental", 1)
	waitAddress(env, "experimental", 80)
	waitVolumes(env, "experimental", 1)
	waitField(env, first, "numberOfReplicas", "1")
	if condition := harness.Condition(env.Status(first), "InvalidAnnotations"); condition != nil {
		t.Errorf("the annotation was rejected: %s", condition.Message)
	}

	env.KubectlWith(`
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata: {name: experimental}
spec: {is_public: True, number_of_replicas: 3}
`, "apply", "-f", "-")
	env.WaitRevision(first, 2)
	waitRunning(env, "experimental", 3)
	waitVolumes(env, "experimental", 3)
	waitField(env, first, "numberOfReplicas", "3")

	env.KubectlWith(`
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata: {name: example-experimental}
spec: {isPublic: True, numberOfReplicas: 3}
`, "apply", "-f", "-")
	second := harness.MakeCR(harness.Experimental, "example-experimental").Obj()
	env.WaitRevision(second, 1)
	waitRunning(env, "example-experimental", 3)
	waitAddress(env, "example-experimental", 80)
	volumes := waitVolumes(env, "example-experimental", 3)
	described := env.Kubectl("describe", "experimental", "example-experimental")
	for _, volume := range volumes {
		if !strings.Contains(described, volume) {
			t.Errorf("kubectl describe does not show volume %s:\n%s", volume, described)
		}
	}

	// A deleted pod is recreated with the same volume.
	gone := env.Get(harness.Object("v1", "Pod", "example-experimental-1")).GetUID()
	env.Kubectl("delete", "pod", "example-experimental-1", "--wait=false")
	waitReplaced(env, "example-experimental", 3, gone)
	if now := waitVolumes(env, "example-experimental", 3); !slices.Equal(now, volumes) {
		t.Errorf("the volumes are %v, want %v", now, volumes)
	}

	// The newer spelling takes precedence over the older one, even if its value
	// is false.
	env.Kubectl("patch", "experimental", "experimental", "--type=merge", "-p", `{"spec":{"isPublic":false,"numberOfReplicas":0}}`)
	env.WaitRevision(first, 3)
	waitRunning(env, "experimental", 0)
	waitType(env, "experimental", corev1.ServiceTypeClusterIP)
	waitField(env, first, "numberOfReplicas", "0")
	// The status reports the volumes that are kept.
	waitVolumes(env, "experimental", 3)
	env.Kubectl("patch", "experimental", "experimental", "--type=merge", "-p", `{"spec":{"isPublic":null,"numberOfReplicas":null}}`)
	env.WaitRevision(first, 4)
	waitRunning(env, "experimental", 3)
	waitAddress(env, "experimental", 80)

	env.Kubectl("scale", "experimental", "example-experimental", "--replicas=1")
	env.WaitRevision(second, 2)
	waitRunning(env, "example-experimental", 1)
	waitField(env, second, "numberOfReplicas", "1")

	env.Kubectl("delete", "experimental", "experimental", "example-experimental", harness.Timeout)
	waitNothingLeft(env, before)
	for _, volume := range volumes {
		env.Wait("volume "+volume+" to be gone", func(ctx context.Context) error {
			_, err := env.Typed.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it still exists: %w", err)
		})
	}
}

// The operator uses the period in the annotation of the Ansible operator,
// unless Chartwright's own annotation sets another.
func TestExperimental_ReconcilePeriod(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	web := harness.MakeCR(harness.Experimental, "web").Obj()
	env.Create(web)
	env.WaitReady(web)

	audit := env.Audit(harness.ShippedUser())
	env.Kubectl("annotate", "experimental", "web", "ansible.operator-sdk/reconcile-period=300ms")
	env.Wait("the period to pass a few times", func(context.Context) error {
		if found := applies(audit); found["web"] < 6 || found["web-pods"] < 3 {
			return fmt.Errorf("applied: %v", found)
		}
		return nil
	})
	env.Kubectl("annotate", "experimental", "web", "chartwright.dev/reconcile-period=1h")
	waitProcessed(env, "fence-1")
	audit = env.Audit(harness.ShippedUser())
	waitProcessed(env, "fence-2")
	if found := applies(audit); found["web"] > 0 || found["web-pods"] > 0 {
		t.Errorf("applied with a longer period of Chartwright: %v", found)
	}
	env.Kubectl("annotate", "experimental", "web", "chartwright.dev/reconcile-period-")
	env.Wait("the Ansible annotation to apply again", func(context.Context) error {
		if found := applies(audit); found["web-pods"] < 2 {
			return fmt.Errorf("applied: %v", found)
		}
		return nil
	})
	env.ExpectRevisions("web", "1 deployed")
}

// applies returns how often each object was applied.
func applies(audit *harness.Audit) map[string]int {
	found := map[string]int{}
	for _, write := range audit.Writes("fence") {
		if write.Verb == "patch" && write.ObjectRef.Subresource == "" {
			found[write.ObjectRef.Name]++
		}
	}
	return found
}

// waitProcessed creates a resource and waits until the operator has deleted it.
// By then, the operator has processed all earlier events.
func waitProcessed(env *harness.Env, name string) {
	env.T().Helper()
	cr := harness.MakeCR(harness.Experimental, name).Obj()
	env.Create(cr)
	env.WaitReady(cr)
}

// A change that the API server would refuse changes nothing.
func TestExperimental_VolumesCannotBeResized(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	web := harness.MakeCR(harness.Experimental, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("patch", "experimental", "web", "--type=merge", "-p", `{"spec":{"numberOfReplicas":2,"storage":{"size":"1Gi"}}}`)
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "ObjectRefused")
	if printed := harness.Condition(status, "Ready").Message; !strings.Contains(printed, "volumeClaimTemplates") && !strings.Contains(printed, "updates to statefulset spec") {
		t.Errorf("the condition's message is %q", printed)
	}
	waitRunning(env, "web", 1)
	env.Kubectl("patch", "experimental", "web", "--type=merge", "-p", `{"spec":{"storage":null}}`)
	env.WaitReady(web)
	waitRunning(env, "web", 2)
}

func TestExperimental_ChartTestsRunOnRequest(t *testing.T) {
	t.Parallel()
	runChartTests(t, harness.Experimental)
}

// waitVolumes waits until the status names the n volumes of a release's claims, and returns them.
func waitVolumes(env *harness.Env, release string, n int) (volumes []string) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("the status to name %d volumes of %s", n, release), func(ctx context.Context) error {
		claims, err := env.Typed.CoreV1().PersistentVolumeClaims(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + release})
		if err != nil {
			return err
		}
		volumes = nil
		for i := range claims.Items {
			name := claims.Items[i].Spec.VolumeName
			volume, err := env.Typed.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("volume %q of claim %s: %w", name, claims.Items[i].Name, err)
			}
			if volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Name != claims.Items[i].Name {
				return fmt.Errorf("volume %s belongs to another claim", name)
			}
			volumes = append(volumes, name)
		}
		slices.Sort(volumes)
		reported := fmt.Sprint(field(env.Get(harness.MakeCR(harness.Experimental, release).Obj()), "persistentVolumesUsed"))
		if len(volumes) != n || reported != fmt.Sprint(volumes) {
			return fmt.Errorf("the status names %s, want %v", reported, volumes)
		}
		return nil
	})
	return volumes
}

// waitType waits until a Service has a type.
func waitType(env *harness.Env, service string, kind corev1.ServiceType) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("service %s to be of type %s", service, kind), func(ctx context.Context) error {
		live, err := env.Typed.CoreV1().Services(env.Namespace).Get(ctx, service, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if live.Spec.Type != kind || kind == corev1.ServiceTypeClusterIP && live.Spec.Ports[0].NodePort != 0 {
			return fmt.Errorf("the type is %s, the ports are %v", live.Spec.Type, live.Spec.Ports)
		}
		return nil
	})
}
