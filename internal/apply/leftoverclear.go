package apply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chartwright/chartwright/internal/api"
)

// clear makes the next apply, or dry run, of a refused object go without its
// leftovers, and reports whether there are any. It changes the object for a dry
// run alone.
func (c Client) clear(ctx context.Context, o Object, refusal error, dryRun bool) (bool, error) {
	if dryRun {
		return c.omitLeftovers(ctx, o, refusal)
	}
	return c.clearLeftovers(ctx, o, refusal)
}

// clearLeftovers makes the next apply of a refused object remove its leftovers,
// and reports whether there are any: our field manager becomes their only owner.
// Nothing but managedFields changes.
func (c Client) clearLeftovers(ctx context.Context, o Object, refusal error) (bool, error) {
	live, found, err := c.findLeftovers(ctx, o, refusal)
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
		// Somebody may have written the object since it was read.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return false, err
	}
	_, err = c.metadata(o).Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManager})
	return err == nil, err
}

// reassign returns the entries of managedFields with a set of fields given to
// our field manager, and taken from every other one.
func reassign(entries []metav1.ManagedFieldsEntry, set *fieldpath.Set, version string) ([]metav1.ManagedFieldsEntry, error) {
	own := metav1.ManagedFieldsEntry{
		Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, FieldsType: "FieldsV1",
	}
	ours := set
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
			own, ours = entry, set.Union(fields)
			continue
		}
		if fields = fields.RecursiveDifference(set); fields.Empty() {
			continue
		}
		if entry.FieldsV1, err = write(fields); err != nil {
			return nil, err
		}
		changed = append(changed, entry)
	}
	var err error
	own.FieldsV1, err = write(ours)
	return append(changed, own), err
}

func write(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	text, err := set.ToJSON()
	return metav1.NewFieldsV1(string(text)), err
}

func (c Client) findLeftovers(ctx context.Context, o Object, refusal error) (*unstructured.Unstructured, []leftover, error) {
	if !apierrors.IsInvalid(refusal) {
		return nil, nil, nil
	}
	live, err := c.Read(ctx, o)
	if err != nil || live == nil {
		return nil, nil, err
	}
	return live, leftovers(o.Unstructured, live, refusal), nil
}

// insert adds a path and everything below it to a set.
func insert(set *fieldpath.Set, path fieldpath.Path, value any) {
	set.Insert(path)
	fields, _ := value.(map[string]any)
	for name, inner := range fields {
		insert(set, append(path.Copy(), fieldpath.PathElement{FieldName: &name}), inner)
	}
}

// omitLeftovers changes the refused object so that its dry run shows whether an
// apply succeeds once the leftovers are gone. A null removes an empty leftover. A
// union with another leftover is left out, and the whole object is dry-run under
// another name. The error is errUnclear where a list item has another leftover.
func (c Client) omitLeftovers(ctx context.Context, o Object, refusal error) (bool, error) {
	_, found, err := c.findLeftovers(ctx, o, refusal)
	if err != nil || len(found) == 0 {
		return false, err
	}
	full := slices.DeleteFunc(slices.Clone(found), leftover.empty)
	if len(full) > 0 {
		if err := c.Try(ctx, o); err != nil {
			return false, err
		}
	}
	for _, l := range found {
		if l.empty() {
			l.in[l.name] = nil
		}
	}
	for _, l := range full {
		if l.of == nil {
			return false, errUnclear
		}
		unstructured.RemoveNestedField(o.Object, l.of...)
	}
	return true, nil
}

// errUnclear marks a dry run that cannot show what the apply would do.
var errUnclear = errors.New("only the apply itself can remove what the object has besides")
