package helm

import (
	"fmt"
	"strings"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/watches"
)

// dropIgnoredFields takes the ignored fields out of an object that is about to be
// applied. They are set when the object is made, in the name of a manager of
// their own, which goes on holding them: a field that its only manager no
// longer applies would be removed.
func (k *kubeClient) dropIgnoredFields(o apply.Object) (apply.Object, error) {
	paths := ignored(k.ignore, o.Unstructured)
	if len(paths) == 0 {
		return o, nil
	}
	if err := k.objects.HandOver(k.ctx, o, paths); err != nil {
		return o, err
	}
	o.Unstructured = o.DeepCopy()
	for _, path := range paths {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	return o, nil
}

// keepIgnoredFields returns a prepared object as it would be after dropIgnoredFields and
// an apply, for a dry run: the ignored fields are as others have left them, and
// are set where the object is still to be made.
func (k *kubeClient) keepIgnoredFields(o apply.Object) (apply.Object, error) {
	paths := ignored(k.ignore, o.Unstructured)
	if len(paths) == 0 {
		return o, nil
	}
	live, err := k.objects.Read(k.ctx, o)
	if err != nil || live == nil {
		return o, err
	}
	o.Unstructured = o.DeepCopy()
	for _, path := range paths {
		value, found, err := unstructured.NestedFieldCopy(live.Object, path...)
		if err != nil || !found {
			unstructured.RemoveNestedField(o.Object, path...)
			continue
		}
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			return o, fmt.Errorf("%s: %w", apply.Describe(o.Unstructured), err)
		}
	}
	return o, nil
}

// ignored returns the paths of an object that the rules name and it has.
func ignored(rules []watches.DriftIgnore, object *unstructured.Unstructured) [][]string {
	var paths [][]string
	for _, rule := range rules {
		if rule.APIVersion != "" && rule.APIVersion != object.GetAPIVersion() ||
			rule.Kind != "" && rule.Kind != object.GetKind() ||
			rule.Name != "" && rule.Name != object.GetName() {
			continue
		}
		for _, pointer := range rule.Paths {
			path := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
			for i, segment := range path {
				path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
			}
			if _, found, err := unstructured.NestedFieldNoCopy(object.Object, path...); found && err == nil {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

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
