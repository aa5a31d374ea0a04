package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// A StatefulSet gets its first claim template. Its pods cannot get claims, so they are replaced
// after the approval.
func TestForce_SetGetsClaims(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	with := func(empty bool) *unstructured.Unstructured {
		return l.cr("web", map[string]any{"set.name": "a", "set.replicas": 2, "set.empty": empty})
	}
	web, set := with(true), harness.Object("apps/v1", "StatefulSet", "web-a")
	l.Create(web)
	l.WaitReady(web)
	uid, pods := l.Get(set).GetUID(), waitPodsOf(l.Env, "web-a", 2)
	l.SetSpec(with(false))
	status := l.WaitCondition(web, "Ready", metav1.ConditionFalse, "ObjectRefused")
	if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, api.AnnotationForce) {
		t.Errorf("the message of Ready does not name the annotation: %s", message)
	}
	l.Annotate(web, "force", "1")
	plan := waitApproval(l.Env, web, "recreate StatefulSet "+l.Namespace+"/web-a")
	if now := waitPodsOf(l.Env, "web-a", 2); l.Get(set).GetUID() != uid || !maps.Equal(now, pods) {
		t.Fatal("an object was recreated without an approval")
	}
	l.Annotate(web, "approve", plan.Digest)
	l.WaitRevision(web, 2)
	l.WaitReady(web)
	l.Wait("pods with claims", func(ctx context.Context) error {
		for name, now := range waitPodsOf(l.Env, "web-a", 2) {
			pod, err := l.Typed.CoreV1().Pods(l.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if now == pods[name] || pod.Spec.Volumes[0].PersistentVolumeClaim == nil {
				return fmt.Errorf("pod %s was not replaced", name)
			}
		}
		return nil
	})
	if event := l.WaitEvent(web, api.EventForced); !strings.Contains(event.Note, "Its pods are deleted") {
		t.Errorf("event is %+v", event)
	}
	l.ExpectRevisions("web", "1 superseded, 2 deployed")
}

// serviceOf returns the values for a Service with the name of the release.
func serviceOf(spec string) []any {
	return []any{"apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec: {selector: {app: web}, " + spec + "}"}
}

func readService(env *harness.Env, name string) *corev1.Service {
	env.T().Helper()
	live, err := env.Typed.CoreV1().Services(env.Namespace).Get(env.T().Context(), name, metav1.GetOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	return live
}

// A Service that must be recreated keeps the addresses that its clients know.
func TestForce_ServiceKeepsAddresses(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(oneTenant)
	with := func(class string) *unstructured.Unstructured {
		return harness.MakeCR(kind, "kept").Set("extraDeploy", serviceOf("type: LoadBalancer, loadBalancerClass: example.com/"+class+", ports: [{name: http, port: 80}, {name: https, port: 443}]")).Obj()
	}
	cr := with("one")
	env.Create(cr)
	env.WaitRevisions("kept", "1 deployed")
	before := readService(env, "kept")
	env.SetSpec(with("two"))
	env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "ObjectRefused")
	env.Annotate(cr, "force", "1")
	env.WaitRevisions("kept", "1 superseded, 2 deployed")
	after := readService(env, "kept")
	if after.UID == before.UID || *after.Spec.LoadBalancerClass != "example.com/two" {
		t.Errorf("the Service was not recreated: %+v", after.Spec)
	}
	if after.Spec.ClusterIP != before.Spec.ClusterIP || after.Spec.Ports[0].NodePort != before.Spec.Ports[0].NodePort || after.Spec.Ports[1].NodePort != before.Spec.Ports[1].NodePort {
		t.Errorf("the addresses are %+v, want those of %+v", after.Spec, before.Spec)
	}
	fenceOf(env, kind)
	if drifted := harness.Condition(env.Status(cr), api.ConditionDrifted); drifted != nil {
		t.Errorf("Drifted is %+v", drifted)
	}
	if now := readService(env, "kept"); now.ResourceVersion != after.ResourceVersion {
		t.Errorf("the Service was written again: %+v", now.ManagedFields)
	}
}

// A Service that the API server would not create is not deleted.
func TestForce_ImpossibleServiceStays(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(oneTenant)
	other := harness.MakeCR(kind, "other").Set("extraDeploy", serviceOf("type: NodePort, ports: [{port: 80}]")).Obj()
	env.Create(other)
	env.WaitReady(other)
	port := readService(env, "other").Spec.Ports[0].NodePort
	for _, test := range []struct{ name, before, after, why string }{
		{"headless", "type: NodePort, ports: [{port: 80}]", "type: NodePort, clusterIP: None, ports: [{port: 80}]", "may not be set to 'None' for NodePort services"},
		{"port", "type: NodePort, ports: [{port: 80}]", fmt.Sprintf("type: NodePort, ports: [{port: 80, nodePort: %d}]", port), "provided port is already allocated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := env.For(t)
			of := func(spec string) *unstructured.Unstructured {
				return harness.MakeCR(kind, test.name).Set("extraDeploy", serviceOf(spec)).Obj()
			}
			cr := of(test.before)
			env.Create(cr)
			env.WaitReady(cr)
			before := readService(env, test.name)
			env.SetSpec(of(test.after))
			env.Annotate(cr, "force", "1")
			fenceOf(env, kind)
			status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "ObjectRefused")
			if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, test.why) {
				t.Errorf("the message of Ready is %s, want %q", message, test.why)
			}
			if now := readService(env, test.name); now.UID != before.UID || now.ResourceVersion != before.ResourceVersion {
				t.Errorf("the Service was changed: %+v", now)
			}
			env.ExpectRevisions(test.name, "1 deployed")
		})
	}
}
