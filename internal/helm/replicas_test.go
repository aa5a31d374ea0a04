package helm

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
