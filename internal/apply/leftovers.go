package apply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chartwright/chartwright/internal/api"
)

// The API server sets defaults, and no field manager owns them. If a manifest switches to
// another member of a union, an apply leaves the default of the old member in the object,
// and validation rejects the combination: for example, a Deployment with the default
// strategy cannot become "Recreate". Helm's strategic merge patches remove such fields if
// the API type has `patchStrategy:"retainKeys"`.

// leftover is a field of the live object that the manifest does not set, and that causes
// the API server to reject the object.
type leftover struct {
	// path is the path of the field.
	path fieldpath.Path
	// name is the name of the field in sent.
	name string
	// sent is the union in the manifest, without the field.
	sent map[string]any
	// value is the value in the live object.
	value any
	// unionPath has the field names that lead to the union. It is nil if the path
	// contains a list.
	unionPath []string
}

// empty reports whether an explicit null removes the field. If the live value has fields,
// the API server treats null as "no change".
func (l leftover) empty() bool {
	fields, ok := l.value.(map[string]any)
	return !ok || len(fields) == 0
}

// leftovers returns the fields that cause the rejection of an object: fields that Helm's
// patch would remove, and defaults that the error names and that no field
// manager owns.
func leftovers(object, live *unstructured.Unstructured, refusal error) []leftover {
	var found []leftover
	if known, ok := typeOf(object.GroupVersionKind()); ok {
		walk := unionWalk{}
		walk.fields(known, object.Object, live.Object, nil, []string{})
		found = walk.found
	}
	for _, cause := range causesOf(refusal) {
		l, ok := refusedDefault(cause.Field, object, live)
		same := func(other leftover) bool { return other.path.Equals(l.path) }
		if ok && !slices.ContainsFunc(found, same) {
			found = append(found, l)
		}
	}
	return found
}

// typeOf returns the Go type of a built-in kind.
func typeOf(gvk schema.GroupVersionKind) (strategicpatch.PatchMetaFromStruct, bool) {
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return strategicpatch.PatchMetaFromStruct{}, false
	}
	known, err := strategicpatch.NewPatchMetaFromStruct(typed)
	return known, err == nil
}

// unionWalk finds the fields of a live object that Helm's patch would remove: fields of
// objects with the patch strategy "retainKeys", if the manifest sets the object but not
// the field.
type unionWalk struct{ found []leftover }

func (w *unionWalk) fields(known strategicpatch.LookupPatchMeta, sent, live map[string]any, path fieldpath.Path, names []string) {
	for name, value := range sent {
		at := append(path.Copy(), fieldpath.PathElement{FieldName: &name})
		switch typed := value.(type) {
		case map[string]any:
			field, meta, err := known.LookupPatchMetadataForStruct(name)
			there, ok := live[name].(map[string]any)
			if err != nil || !ok {
				continue
			}
			var inner []string
			if names != nil {
				inner = append(slices.Clone(names), name)
			}
			w.object(field, meta, typed, there, at, inner)
		case []any:
			field, meta, err := known.LookupPatchMetadataForSlice(name)
			there, ok := live[name].([]any)
			key := meta.GetPatchMergeKey()
			if err != nil || !ok || key == "" {
				continue
			}
			for _, item := range typed {
				if one, other := pair(item, there, key); other != nil {
					element := fieldpath.PathElement{Key: fieldpath.KeyByFields(key, one[key])}
					w.object(field, meta, one, other, append(at.Copy(), element), nil)
				}
			}
		}
	}
}

func (w *unionWalk) object(known strategicpatch.LookupPatchMeta, meta strategicpatch.PatchMeta, sent, live map[string]any, path fieldpath.Path, names []string) {
	w.fields(known, sent, live, path, names)
	if !slices.Contains(meta.GetPatchStrategies(), "retainKeys") {
		return
	}
	for name, value := range live {
		if _, ok := sent[name]; !ok {
			at := append(path.Copy(), fieldpath.PathElement{FieldName: &name})
			w.found = append(w.found, leftover{path: at, name: name, sent: sent, value: value, unionPath: names})
		}
	}
}

// pair returns a list item, and the item with the same key in another list.
func pair(item any, list []any, key string) (one, other map[string]any) {
	one, _ = item.(map[string]any)
	if one[key] == nil {
		return one, nil
	}
	for _, candidate := range list {
		if fields, ok := candidate.(map[string]any); ok && fields[key] == one[key] {
			return one, fields
		}
	}
	return one, nil
}

// refusedDefault returns the field that an error names, if it is a default that the manifest
// does not set.
func refusedDefault(field string, object, live *unstructured.Unstructured) (leftover, bool) {
	names := strings.Split(field, ".")
	// The shortest path is that of a member of a union: "spec.strategy.rollingUpdate".
	if strings.Contains(field, "[") || len(names) < 3 || names[0] != "spec" {
		return leftover{}, false
	}
	of, name := names[:len(names)-1], names[len(names)-1]
	value, found, _ := unstructured.NestedFieldNoCopy(live.Object, names...)
	parent, _, _ := unstructured.NestedFieldNoCopy(object.Object, of...)
	union, ok := parent.(map[string]any)
	if _, set := union[name]; !found || !ok || set || managed(live, names) {
		return leftover{}, false
	}
	return leftover{path: pathOf(names), name: name, sent: union, value: value, unionPath: of}, true
}

// causesOf returns the causes in an error of the API server, one per field.
func causesOf(refusal error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// managed reports whether a field manager owns a field or a part of it. An entry that cannot
// be read counts as owning everything.
func managed(live *unstructured.Unstructured, path []string) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		if entry.FieldsV1 == nil {
			return false
		}
		set, err := parseFields(entry.FieldsV1.GetRawBytes())
		return err != nil || containsPath(set, path)
	})
}

// clearLeftovers makes the operator's field manager the only owner of the leftovers, so that
// the next apply removes them. It reports whether there are any. It changes nothing but
// managedFields.
func (c Client) clearLeftovers(ctx context.Context, o Object, options Options, refusal error) (bool, error) {
	live, found, err := c.findLeftovers(ctx, o, options, refusal)
	if err != nil || len(found) == 0 {
		return false, err
	}
	set := &fieldpath.Set{}
	for _, l := range found {
		insert(set, l.path, l.value)
	}
	entries, err := reassign(live.GetManagedFields(), set, o.GetAPIVersion())
	if err != nil {
		return false, err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		// Fail if another client has changed the object since it was read.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return false, err
	}
	_, err = c.metadata(o).Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManager})
	return err == nil, err
}

// reassign returns managedFields with a set of fields assigned to the operator's field
// manager and removed from all others.
func reassign(entries []metav1.ManagedFieldsEntry, set *fieldpath.Set, version string) ([]metav1.ManagedFieldsEntry, error) {
	own := metav1.ManagedFieldsEntry{
		Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, FieldsType: "FieldsV1",
	}
	applied := set
	var changed []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			changed = append(changed, entry)
			continue
		}
		fields, err := parseFields(entry.FieldsV1.GetRawBytes())
		if err != nil {
			return nil, err
		}
		if entry.Manager == api.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			own, applied = entry, set.Union(fields)
			continue
		}
		if fields = fields.RecursiveDifference(set); fields.Empty() {
			continue
		}
		if entry.FieldsV1, err = encodeFields(fields); err != nil {
			return nil, err
		}
		changed = append(changed, entry)
	}
	var err error
	own.FieldsV1, err = encodeFields(applied)
	return append(changed, own), err
}

func encodeFields(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	text, err := set.ToJSON()
	return metav1.NewFieldsV1(string(text)), err
}

func (c Client) findLeftovers(ctx context.Context, o Object, options Options, refusal error) (*unstructured.Unstructured, []leftover, error) {
	if !apierrors.IsInvalid(refusal) {
		return nil, nil, nil
	}
	live, err := c.Read(ctx, o)
	if err != nil || live == nil {
		return nil, nil, err
	}
	if !options.expects(live) {
		return nil, nil, ErrReplaced
	}
	return live, leftovers(o.Unstructured, live, refusal), nil
}

// insert adds a path and all paths below it to a set.
func insert(set *fieldpath.Set, path fieldpath.Path, value any) {
	set.Insert(path)
	fields, _ := value.(map[string]any)
	for name, inner := range fields {
		insert(set, append(path.Copy(), fieldpath.PathElement{FieldName: &name}), inner)
	}
}

// omitLeftovers changes a rejected object so that its dry run shows whether an apply
// succeeds once the leftovers are removed. It sets empty leftovers to null. For other
// leftovers it removes the union, and also dry-runs the whole object under another name.
// The error is errInconclusive if such a leftover is in a list item.
func (c Client) omitLeftovers(ctx context.Context, o Object, options Options, refusal error) (bool, error) {
	live, found, err := c.findLeftovers(ctx, o, options, refusal)
	if err != nil || len(found) == 0 {
		return false, err
	}
	full := slices.DeleteFunc(slices.Clone(found), leftover.empty)
	if len(full) > 0 {
		if err := c.DryRunCreate(ctx, o, live); err != nil {
			return false, err
		}
	}
	for _, l := range found {
		if l.empty() {
			l.sent[l.name] = nil
		}
	}
	for _, l := range full {
		if l.unionPath == nil {
			return false, errInconclusive
		}
		unstructured.RemoveNestedField(o.Object, l.unionPath...)
	}
	return true, nil
}

// errInconclusive reports that a dry run cannot show the result of the apply.
var errInconclusive = errors.New("only an apply without dry run can remove fields of the live object")
