package helm

import (
	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

// regained returns the objects whose spec.replicas a change of the manifest takes
// back from an autoscaler, which has them otherwise until a person scales: those
// that it sets anew, and those that it had an autoscaler for and has no more.
func regained(original, target helmkube.ResourceList) map[apply.Key]bool {
	before, scaledBefore, scaled := map[apply.Key]bool{}, map[apply.Key]bool{}, map[apply.Key]bool{}
	for _, info := range original {
		o := object(info)
		before[apply.KeyOf(o)] = setsReplicas(o)
		if key, ok := scales(o); ok {
			scaledBefore[key] = true
		}
	}
	for _, info := range target {
		if key, ok := scales(object(info)); ok {
			scaled[key] = true
		}
	}
	taken := map[apply.Key]bool{}
	for _, info := range target {
		o := object(info)
		key := apply.KeyOf(o)
		if set, was := before[key]; !was || !setsReplicas(o) || scaled[key] {
			continue
		} else if !set || scaledBefore[key] {
			taken[key] = true
		}
	}
	return taken
}

func setsReplicas(o apply.Object) bool {
	_, set, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	return set
}

// scales returns what an object scales, if it is an autoscaler.
func scales(o apply.Object) (apply.Key, bool) {
	if gk := o.GroupVersionKind().GroupKind(); gk != (schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}) {
		return apply.Key{}, false
	}
	ref := func(field string) string {
		value, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", field)
		return value
	}
	group := schema.FromAPIVersionAndKind(ref("apiVersion"), ref("kind")).Group
	return apply.Key{Group: group, Kind: ref("kind"), Namespace: apply.KeyOf(o).Namespace, Name: ref("name")}, true
}
