package e2e

import (
	"fmt"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Without a load balancer, an OvhNginx and an Experimental are ready if their
// pods are. A change of the content replaces the pods.
func TestOvhNginx_ReadyWithoutLoadBalancer(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	env.KubectlWith(`
apiVersion: tutorials.ovhcloud.com/v1
kind: OvhNginx
metadata: {name: web}
spec:
  port: 80
  replicaCount: 2
  service: {type: ClusterIP}
  content: {index.html: one}
  openShift: true
`, "apply", "-f", "-")
	web := harness.MakeOvhNginx("web").Obj()
	env.WaitReady(web)
	waitField(env, web, "address", "web."+env.Namespace+".svc")
	waitType(env, "web", corev1.ServiceTypeClusterIP)
	env.Get(harness.Object("policy/v1", "PodDisruptionBudget", "web"))
	env.Get(harness.ConfigMap("web-content"))
	for _, pod := range waitRunning(env, "web", 2) {
		if user := pod.Spec.SecurityContext.RunAsUser; user != nil {
			t.Errorf("pod %s runs as user %d although openShift is true", pod.Name, *user)
		}
	}
	sum := func() string {
		return env.Kubectl("get", "deployment", "web", "-o", `jsonpath={.spec.template.metadata.annotations.checksum/content}`)
	}
	before := sum()
	env.Kubectl("patch", "ovhnginx", "web", "--type=merge", "-p", `{"spec":{"content":{"index.html":"two"}}}`)
	env.WaitRevision(web, 2)
	if before == "" || sum() == before {
		t.Errorf("a change of the content does not replace the pods")
	}

	// The type of the Service can change.
	env.Kubectl("patch", "ovhnginx", "web", "--type=merge", "-p", `{"spec":{"service":{"type":"LoadBalancer"}}}`)
	env.WaitReady(web)
	waitAddress(env, "web", 80)
	env.Kubectl("patch", "ovhnginx", "web", "--type=merge", "-p", `{"spec":{"service":{"type":"NodePort"}}}`)
	env.WaitRevision(web, 4)
	waitType(env, "web", corev1.ServiceTypeNodePort)
	waitField(env, web, "address", "web."+env.Namespace+".svc")
}

// An upgrade does not overwrite the replicas that an autoscaler of the release
// has set.
func TestOvhNginx_Autoscaler(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	spec := func(port int) *unstructured.Unstructured {
		return harness.MakeOvhNginx("web").Replicas(2).Set("port", port).Set("autoscaling.enabled", true).Set("networkPolicy.enabled", true).Obj()
	}
	web := spec(80)
	env.Create(web)
	env.WaitReady(web)
	env.Get(harness.Object("autoscaling/v2", "HorizontalPodAutoscaler", "web"))
	env.Get(harness.Object("networking.k8s.io/v1", "NetworkPolicy", "web"))
	_, err := env.Typed.AppsV1().Deployments(env.Namespace).UpdateScale(t.Context(), "web", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 4},
	}, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		t.Fatal(err)
	}
	waitRunning(env, "web", 4)
	env.SetSpec(spec(8080))
	env.WaitRevision(web, 2)
	waitAddress(env, "web", 8080)
	waitRunning(env, "web", 4)

	// Without the autoscaler, the number of the spec counts.
	env.SetSpec(harness.MakeOvhNginx("web").Replicas(1).Obj())
	env.WaitRevision(web, 3)
	env.WaitGone(
		harness.Object("autoscaling/v2", "HorizontalPodAutoscaler", "web"), harness.Object("networking.k8s.io/v1", "NetworkPolicy", "web"),
		harness.Object("policy/v1", "PodDisruptionBudget", "web"),
	)
	waitRunning(env, "web", 1)
}

// The tests of the charts run on request.
func TestChartTests_OfPodSetAndOvhNginx(t *testing.T) {
	t.Parallel()
	for _, cr := range []*unstructured.Unstructured{harness.MakePodSet("web").Obj(), harness.MakeOvhNginx("web").Obj()} {
		t.Run(cr.GetKind(), func(t *testing.T) {
			t.Parallel()
			env := harness.NewInstalled(t)
			env.Create(cr)
			env.WaitReady(cr)
			env.Annotate(cr, "test", "now")
			env.WaitCondition(cr, "Tested", metav1.ConditionTrue, "TestsPassed")
			env.WaitGone(harness.Object("v1", "Pod", "web-test"))
		})
	}
}

// An Experimental serves HTTPS and files by value without a load balancer, and
// keeps its volumes when these change.
func TestExperimental_ContentAndTLS(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	spec := func(page string) *unstructured.Unstructured {
		return harness.MakeCR(harness.Experimental, "web").Set("numberOfReplicas", 2).Set("service.type", "NodePort").
			Set("content", map[string]any{"index.html": page}).Set("tls.secretName", "certificate").Obj()
	}
	web := spec("one")
	env.Create(harness.Secret("certificate"), web)
	env.WaitReady(web)
	volumes := waitVolumes(env, "web", 2)
	waitType(env, "web", corev1.ServiceTypeNodePort)
	if ports := env.Kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[*].port}"); ports != "80 443" {
		t.Errorf("the ports are %s", ports)
	}
	env.Get(harness.Object("policy/v1", "PodDisruptionBudget", "web"))
	env.SetSpec(spec("two"))
	env.WaitRevision(web, 2)
	if page := env.Kubectl("get", "configmap", "web-content", "-o", `jsonpath={.data.index\.html}`); page != "two" {
		t.Errorf("the page is %s", page)
	}
	if now := waitVolumes(env, "web", 2); fmt.Sprint(now) != fmt.Sprint(volumes) {
		t.Errorf("the volumes are %v, want %v", now, volumes)
	}
}
