package helm

import (
	"fmt"
	"strings"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/watches"
)

// dropIgnoredFields takes the ignored fields out of an object that is about to be
// applied. They are set when the object is made, in the name of a manager of
// their own, which goes on holding them: a field that its only manager no
// longer applies would be removed.
func (k *kubeClient) dropIgnoredFields(o apply.Object) (apply.Object, error) {
	paths := ignored(k.Ignore, o.Unstructured)
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
	paths := ignored(k.Ignore, o.Unstructured)
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
func regained(original, target helmkube.ResourceList) sets.Set[apply.Key] {
	before := map[apply.Key]bool{}
	for _, info := range original {
		before[apply.KeyOf(object(info))] = setsReplicas(object(info))
	}
	scaledBefore, scaled, taken := scaledBy(original), scaledBy(target), sets.Set[apply.Key]{}
	for _, info := range target {
		key := apply.KeyOf(object(info))
		if set, was := before[key]; was && setsReplicas(object(info)) && !scaled.Has(key) && (!set || scaledBefore.Has(key)) {
			taken.Insert(key)
		}
	}
	return taken
}

// scaledBy returns the keys of the objects that the autoscalers among objects scale.
func scaledBy(objects helmkube.ResourceList) sets.Set[apply.Key] {
	scaled := sets.Set[apply.Key]{}
	for _, info := range objects {
		o := object(info)
		if (o.GroupVersionKind().GroupKind() != schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}) {
			continue
		}
		ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "scaleTargetRef")
		group := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"]).Group
		scaled.Insert(apply.Key{Group: group, Kind: ref["kind"], Namespace: apply.KeyOf(o).Namespace, Name: ref["name"]})
	}
	return scaled
}

func setsReplicas(o apply.Object) bool {
	_, set, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	return set
}
