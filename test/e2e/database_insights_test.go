package e2e

import (
	"context"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// A Database can have metrics and an autoscaler.
func TestDatabase_MetricsAndAutoscaler(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	spec := func(port int) *unstructured.Unstructured {
		return harness.MakeCR(harness.Database, "web").Set("replicas", 2).Set("port", port).Set("metrics.enabled", true).
			Set("autoscaling.enabled", true).Set("autoscaling.maxReplicas", 5).Set("networkPolicy.enabled", true).Obj()
	}
	web := spec(5432)
	env.Create(web)
	env.WaitReady(web)
	// Exporters are not in the pods of the servers, so that they cannot make a
	// server unavailable.
	for _, pod := range waitRunning(env, "web", 2) {
		if len(pod.Spec.Containers) != 1 {
			t.Errorf("pod %s has an exporter: %+v", pod.Name, pod.Spec.Containers)
		}
	}
	if image := imageOf(env, "web-exporter"); !strings.Contains(image, "postgres-exporter") {
		t.Errorf("the image of the exporter is %s", image)
	}
	for _, object := range []*unstructured.Unstructured{
		harness.Object("policy/v1", "PodDisruptionBudget", "web"), harness.Object("autoscaling/v2", "HorizontalPodAutoscaler", "web"),
	} {
		env.Get(object)
	}
	env.Kubectl("get", "networkpolicy", "web")

	// An upgrade does not overwrite the autoscaler's replicas.
	sets := env.Typed.AppsV1().StatefulSets(env.Namespace)
	_, err := sets.UpdateScale(t.Context(), "web", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 4},
	}, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		t.Fatal(err)
	}
	waitRunning(env, "web", 4)
	waitField(env, web, "replicas", "4")
	env.SetSpec(spec(6543))
	env.WaitRevision(web, 2)
	waitRunning(env, "web", 4)
	waitField(env, web, "readyReplicas", "4")
	waitField(env, web, "phase", "Running")

	// Objects that are no longer requested are deleted.
	env.SetSpec(harness.MakeCR(harness.Database, "web").Set("replicas", 2).Obj())
	env.WaitRevision(web, 3)
	env.WaitGone(harness.Object("autoscaling/v2", "HorizontalPodAutoscaler", "web"), harness.Object("networking.k8s.io/v1", "NetworkPolicy", "web"),
		harness.Object("apps/v1", "StatefulSet", "web-exporter"))
	for _, pod := range waitRunning(env, "web", 2) {
		if len(pod.Spec.Containers) != 1 {
			t.Errorf("pod %s still has an exporter", pod.Name)
		}
	}
}

// Alerts are created once the Prometheus Operator's CRDs exist, also if the API
// server does not support streaming lists.
func alertsOncePrometheusOperatorIsInstalled(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	definitions := namespacedKinds("monitoring.coreos.com", "ServiceMonitor", "PrometheusRule")
	web := harness.MakeCR(harness.Database, "web").Set("metrics.enabled", true).Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	defer func() {
		env.Delete(web)
		env.WaitGone(web)
		env.KubectlWith(definitions, "delete", "--ignore-not-found", "-f", "-")
	}()
	env.KubectlWith(definitions, "apply", "-f", "-")
	env.Wait("the alerts to exist", func(ctx context.Context) error {
		for _, kind := range []string{"PrometheusRule", "ServiceMonitor"} {
			if _, err := env.At(harness.Object("monitoring.coreos.com/v1", kind, "web")).Get(ctx, "web", metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	env.WaitReady(web)
	rules := env.Kubectl("get", "prometheusrules", "web", "-o", "jsonpath={.spec.groups[*].rules[*].alert}")
	want := "DatabaseDown DatabaseStandbyDown DatabaseStandbyLags DatabaseConnectionsNearlyUsedUp DatabaseVolumeNearlyFull DatabaseBackupTooOld"
	if rules != want {
		t.Errorf("the alerts are %s, want %s", rules, want)
	}
}

// The chart's tests run on request.
func TestDatabase_ChartTestsRunOnRequest(t *testing.T) {
	t.Parallel()
	runChartTests(t, harness.Database)
}
