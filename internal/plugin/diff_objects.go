package plugin

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
)

// objectDiff is the difference of one object between two manifests.
type objectDiff struct {
	objectKey

	Change change `json:"change"`
	// Diff is a unified diff, with the values of Secrets masked.
	Diff string `json:"diff"`
}

// objectKey identifies an object of a manifest.
type objectKey struct {
	objectRef

	// Hook: the object is a Helm hook.
	Hook bool `json:"hook,omitempty"`
	// nth distinguishes objects that a manifest contains several times.
	nth int
}

// change is how an object changes.
type change string

const (
	added   change = "Added"
	changed change = "Changed"
	removed change = "Removed"
)

// manifest is one side of a comparison.
type manifest struct {
	// title is the name in the diff, such as "revision 2".
	title string
	// namespace is that of objects without a namespace.
	namespace      string
	objects, hooks []chart.RenderedObject
}

// compare returns the objects that differ, sorted by kind, namespace and name.
func compare(before, after manifest) ([]objectDiff, error) {
	was, is := before.index(), after.index()
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	diffs := []objectDiff{}
	for _, at := range slices.SortedFunc(maps.Keys(keys), objectKey.order) {
		one, other := mask(was[at], is[at])
		text, err := unified(one, other, at.String(), before.title, after.title)
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		diff := objectDiff{objectKey: at, Change: changed, Diff: text}
		switch {
		case one == nil:
			diff.Change = added
		case other == nil:
			diff.Change = removed
		}
		diffs = append(diffs, diff)
	}
	return diffs, nil
}

func (m manifest) index() map[objectKey]*unstructured.Unstructured {
	found := map[objectKey]*unstructured.Unstructured{}
	add := func(objects []chart.RenderedObject, hook bool) {
		for _, o := range objects {
			gvk := o.GroupVersionKind()
			at := objectKey{objectRef: objectRef{gvk.Group, gvk.Kind, o.GetNamespace(), cmp.Or(o.GetName(), o.GetGenerateName())}, Hook: hook}
			if at.Namespace == m.namespace {
				// A chart can set the namespace of the release or omit it.
				at.Namespace = ""
			}
			for ; found[at] != nil; at.nth++ {
			}
			found[at] = o.Unstructured
		}
	}
	add(m.objects, false)
	add(m.hooks, true)
	return found
}

func (k objectKey) order(other objectKey) int {
	return cmp.Or(
		cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name),
		cmp.Compare(k.Group, other.Group), cmp.Compare(strconv.FormatBool(k.Hook), strconv.FormatBool(other.Hook)), cmp.Compare(k.nth, other.nth),
	)
}

// String returns the name in the diff: "Deployment.apps web", "ConfigMap other/web".
func (k objectKey) String() string {
	kind := schema.GroupKind{Group: k.Group, Kind: k.Kind}.String()
	text := apply.Key{Kind: kind, Namespace: k.Namespace, Name: k.Name}.String()
	if k.Hook {
		text += " (hook)"
	}
	return text
}

// unified returns a unified diff of two objects, or "" if they are equal. Keys are
// sorted, so that a different order of keys in a template makes no difference.
func unified(before, after *unstructured.Unstructured, name, titleBefore, titleAfter string) (string, error) {
	linesBefore, err := linesOf(before)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", titleBefore, name, err)
	}
	linesAfter, err := linesOf(after)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", titleAfter, name, err)
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: linesBefore, FromFile: title(before, name, titleBefore),
		B: linesAfter, ToFile: title(after, name, titleAfter),
		Context: 3,
	})
}

func title(o *unstructured.Unstructured, name, manifest string) string {
	if o == nil {
		return "/dev/null"
	}
	return name + ", " + manifest
}

func linesOf(o *unstructured.Unstructured) ([]string, error) {
	if o == nil {
		return nil, nil
	}
	data, err := yaml.Marshal(o.Object)
	return slices.Collect(strings.Lines(string(data))), err
}

// paintDiff colors a unified diff, line by line.
func (p painter) paintDiff(text string) string {
	var painted strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.TrimSuffix(line, "\n"), "\n"
		with := plain
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			with = bold
		case strings.HasPrefix(line, "@@ "):
			with = cyan
		case strings.HasPrefix(line, "-"):
			with = red
		case strings.HasPrefix(line, "+"):
			with = green
		}
		painted.WriteString(p.paint(line, with) + end)
	}
	return painted.String()
}

// Replacements for the values of Secrets. They only show whether a value changes.
const (
	masked       = "***"
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// mask returns both sides of an object without the values of Secrets. Each can be nil,
// and neither is modified.
func mask(before, after *unstructured.Unstructured) (shownBefore, shownAfter *unstructured.Unstructured) {
	if !isSecret(before) && !isSecret(after) {
		return before, after
	}
	shownBefore, shownAfter = before.DeepCopy(), after.DeepCopy()
	for _, path := range [][]string{{"data"}, {"stringData"}, {"metadata", "annotations", corev1.LastAppliedConfigAnnotation}} {
		maskField(shownBefore, after, maskedBefore, path)
		maskField(shownAfter, before, maskedAfter, path)
	}
	return shownBefore, shownAfter
}

func isSecret(o *unstructured.Unstructured) bool {
	return o != nil && o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// maskField masks a field of one side, key by key if it is a map, by comparing it
// with the other side.
func maskField(shown, other *unstructured.Unstructured, otherwise string, path []string) {
	value, otherValue := valueAt(shown, path), valueAt(other, path)
	keys, isMap := value.(map[string]any)
	otherKeys, _ := otherValue.(map[string]any)
	for key, value := range keys {
		otherValue, found := otherKeys[key]
		keys[key] = maskOf(found && reflect.DeepEqual(value, otherValue), otherwise)
	}
	// A null contains no secret. Any other value that is not a map can contain one.
	if value != nil && !isMap {
		// This cannot fail, because the field exists.
		_ = unstructured.SetNestedField(shown.Object, maskOf(reflect.DeepEqual(value, otherValue), otherwise), path...)
	}
}

func maskOf(same bool, otherwise string) string {
	if same {
		return masked
	}
	return otherwise
}

// valueAt returns the value of a field without copying it, or nil.
func valueAt(o *unstructured.Unstructured, path []string) any {
	if o == nil {
		return nil
	}
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		return nil
	}
	return value
}
