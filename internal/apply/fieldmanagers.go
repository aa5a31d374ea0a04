package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chartwright/chartwright/internal/api"
)

// TakeOverFields takes over the fields that the named managers have written by requests
// other than server-side apply. Otherwise, a field that the chart no longer renders would
// stay in the object. It is needed once, before the first apply. The argument live is the
// object as it was read; the result is the new object, or nil if it does not exist.
func (c Client) TakeOverFields(ctx context.Context, o Object, live *metav1.PartialObjectMetadata, managers []string) (*metav1.PartialObjectMetadata, error) {
	names := sets.New(managers...).Delete(controllerManager)
	upgraded, err := c.takeManagedFields(ctx, o, live, names)
	if answer := o.answerOf(err); answer != Conflict && answer != Gone {
		return upgraded, err
	}
	// Another client has changed the object since it was read.
	now, err := c.Get(ctx, o)
	if err != nil || now == nil {
		return nil, err
	}
	if now.GetUID() != live.GetUID() {
		return nil, fmt.Errorf("take over the fields of %s: %w", Describe(o), ErrReplaced)
	}
	return c.takeManagedFields(ctx, o, now, names)
}

// forceOwnership takes over all fields that other managers have written by updates, so that
// the next apply removes those that it does not set. It excludes subresources and
// Kubernetes' own controllers.
func (c Client) forceOwnership(ctx context.Context, o Object, options Options) error {
	live, err := c.Get(ctx, o)
	if err != nil || live == nil {
		return err
	}
	if !options.expects(live) {
		return fmt.Errorf("take over the fields of %s: %w", Describe(o), ErrReplaced)
	}
	managers := sets.New[string]()
	for _, e := range live.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && e.Manager != controllerManager {
			managers.Insert(e.Manager)
		}
	}
	_, err = c.takeManagedFields(ctx, o, live, managers)
	return err
}

// takeManagedFields assigns the entries of managers to the operator's field manager, and
// returns the result.
func (c Client) takeManagedFields(ctx context.Context, o Object, live *metav1.PartialObjectMetadata, managers sets.Set[string]) (*metav1.PartialObjectMetadata, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, managers, api.FieldManager)
	if err == nil && patch != nil && c.Plan == nil {
		live, err = served(c, o, func(o Object) (*metav1.PartialObjectMetadata, error) {
			return c.metadata(o).Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManager})
		})
	}
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", Describe(o), err)
	}
	return live, nil
}

// HandOver assigns the fields at the paths to the manager api.FieldManagerInitial, with
// their live values, if the operator's field manager owns them. It creates the object
// first if the options have no UID. It returns the UID of the object.
func (c Client) HandOver(ctx context.Context, o Object, paths [][]string, options Options) (types.UID, error) {
	if c.Plan != nil {
		// The fields keep their values.
		return options.UID, nil
	}
	if options.UID == "" {
		created, err := c.Apply(ctx, o, options)
		if err != nil {
			return "", err
		}
		return created.GetUID(), c.applyInitial(ctx, o, o.Unstructured, paths, created.GetUID())
	}
	live, err := c.Read(ctx, o)
	switch {
	case err != nil:
		return "", err
	case live == nil || live.GetUID() != options.UID:
		return "", fmt.Errorf("hand over fields of %s: %w", Describe(o), ErrReplaced)
	}
	entry := ownEntry(live.GetManagedFields())
	if entry == nil {
		return options.UID, nil
	}
	held, err := parseFields(entry.FieldsV1.GetRawBytes())
	if err != nil {
		return "", fmt.Errorf("read the managed fields of %s: %w", Describe(o), err)
	}
	paths = slices.DeleteFunc(slices.Clone(paths), func(path []string) bool { return !containsPath(held, path) })
	return options.UID, c.applyInitial(ctx, o, live, paths, options.UID)
}

// applyInitial applies only the fields at the paths, with the values that they have in the
// object from, to the object with the UID.
func (c Client) applyInitial(ctx context.Context, o Object, from *unstructured.Unstructured, paths [][]string, uid types.UID) error {
	handed := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range paths {
		value, found, err := unstructured.NestedFieldCopy(from.Object, path...)
		if err != nil || !found {
			continue
		}
		if err := unstructured.SetNestedField(handed.Object, value, path...); err != nil {
			return fmt.Errorf("%s: %w", Describe(o), err)
		}
	}
	if len(handed.Object) == 0 {
		return nil
	}
	handed.SetGroupVersionKind(o.Mapping.GroupVersionKind)
	handed.SetNamespace(o.GetNamespace())
	handed.SetName(o.GetName())
	_, err := c.patch(ctx, Object{Unstructured: handed, Mapping: o.Mapping}, api.FieldManagerInitial, Options{UID: uid})
	if o.answerOf(err) == Conflict {
		err = fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	if err != nil {
		return fmt.Errorf("hand over fields of %s: %w", Describe(o), err)
	}
	return nil
}

// containsPath reports whether a set contains a path or a path below it.
func containsPath(set *fieldpath.Set, path []string) bool {
	at := pathOf(path)
	if set.Has(at) {
		return true
	}
	for _, element := range at {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}

// pathOf returns the path with these field names.
func pathOf(names []string) fieldpath.Path {
	path := make(fieldpath.Path, len(names))
	for i := range names {
		path[i] = fieldpath.PathElement{FieldName: &names[i]}
	}
	return path
}
