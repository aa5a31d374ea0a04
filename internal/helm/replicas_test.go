package helm

import (
	"net/http"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

// Only a change of the manifest sets replicas that an autoscaler has set.
func TestRegained(t *testing.T) {
	const (
		plain   = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: true}\n"
		two     = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n"
		three   = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"
		scaler  = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"
		another = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: api}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}}\n"
	)
	for _, test := range []struct {
		name          string
		before, after []string
		want          bool
	}{
		{"nothing changes", []string{two}, []string{two}, false},
		{"another number, and a foreign autoscaler", []string{two}, []string{three}, false},
		{"set again", []string{plain}, []string{two}, true},
		{"no longer set", []string{two}, []string{plain}, false},
		{"never set, without its autoscaler", []string{plain, scaler}, []string{plain}, false},
		{"set again, without its autoscaler", []string{plain, scaler}, []string{two}, true},
		{"without its autoscaler", []string{two, scaler}, []string{two}, true},
		{"with its autoscaler still", []string{two, scaler}, []string{three, scaler}, false},
		{"set again, with its autoscaler", []string{plain}, []string{two, scaler}, false},
		{"without a foreign autoscaler", []string{two, another}, []string{two}, false},
		{"new", nil, []string{two}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newTestBuilder(t)
			mapper, ok := b.mapper.(*meta.DefaultRESTMapper)
			if !ok {
				t.Fatalf("the mapper is a %T", b.mapper)
			}
			mapper.Add(schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, meta.RESTScopeNamespace)
			before, after := build(t, b, strings.Join(test.before, "---\n")), build(t, b, strings.Join(test.after, "---\n"))
			taken := regained(before, after)
			if len(taken) > 1 || (len(taken) == 1) != test.want {
				t.Errorf("regained are %v", taken)
			}
		})
	}
}

// An autoscaler that sets the replicas just before it is deleted does not keep them, nor if its
// controller learns of the deletion later. Another autoscaler may set them after that.
func TestUpgrade_RemovedAutoscalerScalesLast(t *testing.T) {
	w := newWorld(t)
	c := small().with("templates/config.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: {{ .Values.replicas }}, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
{{ if .Values.scaled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {minReplicas: 2, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
{{ end }}`).load(t)
	w.kinds = map[schema.GroupKind]schema.GroupVersionResource{{Group: "apps", Kind: "Deployment"}: {Group: "apps", Version: "v1", Resource: "deployments"}}
	w.must(w.helm.Install(t.Context(), w.request(c, "one", map[string]any{"replicas": 2, "scaled": true})))
	deployments, scaled := w.plain.AppsV1().Deployments(w.namespace), 0
	scale := func() error {
		_, err := deployments.UpdateScale(t.Context(), "web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: w.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 2},
		}, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
		return err
	}
	w.net.armed.Store(&disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/horizontalpodautoscalers/web") {
			scaled++
			if err := scale(); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(request)
	}})
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", map[string]any{"replicas": 1})))
	w.net.armed.Store(nil)
	expect := func(replicas int32, drifted int) {
		t.Helper()
		live, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		w.must(err)
		if drift := w.objects.Drift(w.owner.UID); *live.Spec.Replicas != replicas || len(drift) != drifted {
			t.Fatalf("%d replicas, drift %v", *live.Spec.Replicas, drift)
		}
	}
	expect(1, 0)
	if scaled != 1 {
		t.Errorf("the autoscaler has written %d times", scaled)
	}
	w.must(scale())
	expect(2, 1)
	_, err := w.helm.Repair(w.Context(), w.request(c, "two", map[string]any{"replicas": 1}), map[apply.Key]bool{w.objects.Drift(w.owner.UID)[0].Key: true})
	w.must(err)
	expect(1, 0)
	w.must(scale())
	expect(2, 0)
}
