package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/internal/api"
)

// Delete deletes the object unless it belongs to another owner. An object that
// is not there counts as deleted. The error is ErrForeign where the object is
// another's.
func (c Client) Delete(ctx context.Context, o Object, owner Owner, policy metav1.DeletionPropagation) error {
	live, err := c.Get(ctx, o)
	if err != nil || live == nil {
		return err
	}
	if err := CheckOwnership(live, owner); err != nil {
		return fmt.Errorf("delete %s: %w", Describe(o), err)
	}
	return c.DeleteUID(ctx, o, live.GetUID(), policy)
}

// DeleteUID deletes the object if it still has that UID. One that has not is
// gone, and another has taken its name.
func (c Client) DeleteUID(ctx context.Context, o Object, uid types.UID, policy metav1.DeletionPropagation) error {
	err := c.metadata(o).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &policy,
	})
	if apierrors.IsConflict(err) {
		// The precondition is one cause of it, and not the only one.
		live, readErr := c.Get(ctx, o)
		if readErr == nil && (live == nil || live.GetUID() != uid) {
			return nil
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", Describe(o), err)
	}
	return nil
}

// pollInterval is how often a deletion that was asked for is looked at.
const pollInterval = 200 * time.Millisecond

// WaitGone waits until the object is gone or the context ends.
func (c Client) WaitGone(ctx context.Context, o Object) error {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		live, err := c.Get(ctx, o)
		return live == nil && err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s is gone: %w", Describe(o), err)
	}
	return nil
}

// neverRecreated kinds hold what cannot be made again.
var neverRecreated = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"},
	{Kind: "PersistentVolume"},
	{Kind: "Namespace"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// IsImmutable reports whether an object was refused for what it is now, and
// would be taken if it were made anew: the API server is asked so, by a dry
// run under another name. Kinds that hold what cannot be made again are never,
// nor are objects that a user keeps.
func (c Client) IsImmutable(ctx context.Context, o Object, refusal error) (bool, error) {
	if !apierrors.IsInvalid(refusal) || slices.Contains(neverRecreated, o.GroupVersionKind().GroupKind()) {
		return false, nil
	}
	live, err := c.Get(ctx, o)
	if err != nil || live == nil || HasKeepPolicy(live) || HasKeepPolicy(o) {
		return false, err
	}
	return c.DryRunCreate(ctx, o) == nil, nil
}

// DryRunCreate returns the API server's refusal of the object as a new one: it dry-runs
// the object under another name. The refusal has the object's own name.
func (c Client) DryRunCreate(ctx context.Context, o Object) error {
	probe := Object{Unstructured: o.DeepCopy(), Mapping: o.Mapping}
	name := o.GetName()
	probe.SetName(strings.TrimRight(name[:min(len(name), 40)], "-.") + "-" + rand.String(5))
	clearNodePorts(probe.Object)
	_, err := c.patch(ctx, probe, api.FieldManager, true)
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok {
		refusal.ErrStatus.Message = strings.ReplaceAll(refusal.ErrStatus.Message, probe.GetName(), name)
	}
	return err
}

// clearNodePorts takes from a Service what only one at a time can have.
func clearNodePorts(service map[string]any) {
	if service["kind"] != "Service" {
		return
	}
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		unstructured.RemoveNestedField(service, "spec", field)
	}
	ports, _, _ := unstructured.NestedFieldNoCopy(service, "spec", "ports")
	list, _ := ports.([]any)
	for _, port := range list {
		fields, _ := port.(map[string]any)
		delete(fields, "nodePort")
	}
}

// Replace deletes the object and makes it again. What belongs to it goes, save
// the pods of a StatefulSet, which the new one takes over. The error is
// ErrForeign where the object is another's.
func (c Client) Replace(ctx context.Context, o Object, owner Owner, options Options) (*metav1.PartialObjectMetadata, error) {
	policy := metav1.DeletePropagationBackground
	if o.GetKind() == "StatefulSet" {
		policy = metav1.DeletePropagationOrphan
	}
	if err := c.Delete(ctx, o, owner, policy); err != nil {
		return nil, err
	}
	if err := c.WaitGone(ctx, o); err != nil {
		return nil, err
	}
	applied, err := c.Apply(ctx, o, options)
	if err != nil {
		return nil, fmt.Errorf("it was deleted, to be made again: %w", err)
	}
	return applied, nil
}
