package helm

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/watches"
)

// dropIgnoredFields removes the ignored fields from an object that is about to be
// applied. When the object is created, the fields are applied once with a field manager
// of their own, because server-side apply removes a field that its only manager no
// longer applies.
// It changes the UID in the options to that of the object.
func (k *kubeClient) dropIgnoredFields(o apply.Object, options *apply.Options) (apply.Object, error) {
	paths := ignored(k.Ignore, o.Unstructured)
	if len(paths) == 0 {
		return o, nil
	}
	uid, err := k.objects.HandOver(k.ctx, o, paths, *options)
	if err != nil {
		return o, err
	}
	options.UID = uid
	o.Unstructured = o.DeepCopy()
	for _, path := range paths {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	return o, nil
}

// keepIgnoredFields returns a prepared object as it would be after dropIgnoredFields
// and an apply, for a dry run: ignored fields have their live values, or the rendered
// values if the object does not exist.
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

// ignored returns the paths of an object's fields that match the rules, without those of list
// items.
func ignored(rules []watches.DriftIgnore, object *unstructured.Unstructured) [][]string {
	return slices.DeleteFunc(matching(rules, object), func(path []string) bool {
		_, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		return !found || err != nil
	})
}

// matching returns the paths of the rules that match an object.
func matching(rules []watches.DriftIgnore, object *unstructured.Unstructured) [][]string {
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
			paths = append(paths, path)
		}
	}
	return paths
}

// regained returns the objects whose spec.replicas the new manifest sets although an
// autoscaler has set it: the original manifest did not set the field, or it had an
// autoscaler for the object and the target has none.
func regained(original, target engine.ResourceList) sets.Set[apply.Key] {
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

// scaledBy returns the keys of the objects that the autoscalers among the given objects
// scale.
func scaledBy(objects engine.ResourceList) sets.Set[apply.Key] {
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
