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

// DeleteUID deletes the object if it still has the given UID. Otherwise the object has been
// deleted already and another object has its name.
func (c Client) DeleteUID(ctx context.Context, o Object, uid types.UID, policy metav1.DeletionPropagation) error {
	if planned, err := c.planned(ctx, Remove, o, nil); planned {
		return err
	}
	_, err := served(c, o, func(o Object) (any, error) {
		return nil, c.metadata(o).Delete(ctx, o.GetName(), metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &uid},
			PropagationPolicy: &policy,
		})
	})
	if apierrors.IsConflict(err) {
		// A precondition is not the only possible cause of a conflict.
		live, readErr := c.Get(ctx, o)
		if readErr == nil && (live == nil || live.GetUID() != uid) {
			return nil
		}
	}
	if err != nil && AnswerOf(err) != Gone {
		return fmt.Errorf("delete %s: %w", Describe(o), err)
	}
	return nil
}

// pollInterval is the interval between reads of an object that is being deleted.
const pollInterval = 200 * time.Millisecond

// WaitGone waits until the object no longer exists or the context ends. With a UID, it waits
// for no other object of that name.
func (c Client) WaitGone(ctx context.Context, o Object, uid types.UID) error {
	if c.Plan != nil {
		return nil
	}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		live, err := c.Get(ctx, o)
		return err == nil && (live == nil || uid != "" && live.GetUID() != uid), err
	})
	if err != nil {
		return fmt.Errorf("wait for the deletion of %s: %w", Describe(o), err)
	}
	return nil
}

// neverRecreated are kinds whose objects contain data that would be lost.
var neverRecreated = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"},
	{Kind: "PersistentVolume"},
	{Kind: "Namespace"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// IsImmutable reports whether the API server rejected a change of an object that it would
// accept as a new object. It checks this by a dry run with another name. It returns false
// for objects of the kinds neverRecreated and for objects with the policy "keep".
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

// DryRunCreate dry-runs the creation of the object with another name, and returns the error
// of the API server. The error contains the name of the object itself.
func (c Client) DryRunCreate(ctx context.Context, o Object) error {
	o, _ = o.inServedVersion(nil)
	probe := Object{Unstructured: o.DeepCopy(), Mapping: o.Mapping}
	name := o.GetName()
	probe.SetName(strings.TrimRight(name[:min(len(name), 40)], "-.") + "-" + rand.String(5))
	clearNodePorts(probe.Object)
	_, err := c.patch(ctx, probe, api.FieldManager, Options{DryRun: true})
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok {
		refusal.ErrStatus.Message = strings.ReplaceAll(refusal.ErrStatus.Message, probe.GetName(), name)
	}
	return err
}

// clearNodePorts removes the fields of a Service whose values must be unique.
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

// Replace deletes the object with the UID in the options and creates it again. Dependents
// are deleted too, except the pods of a StatefulSet, which the new StatefulSet adopts. The
// error is ErrReplaced if another client creates the object after the deletion.
func (c Client) Replace(ctx context.Context, o Object, options Options) (*metav1.PartialObjectMetadata, error) {
	if planned, err := c.planned(ctx, Recreate, o, o.Unstructured); planned {
		return metadataOf(o.Unstructured), err
	}
	policy := metav1.DeletePropagationBackground
	if o.GetKind() == "StatefulSet" {
		policy = metav1.DeletePropagationOrphan
	}
	if err := c.DeleteUID(ctx, o, options.UID, policy); err != nil {
		return nil, err
	}
	if err := c.WaitGone(ctx, o, options.UID); err != nil {
		return nil, err
	}
	options.UID = ""
	applied, err := c.Apply(ctx, o, options)
	if err != nil {
		return nil, fmt.Errorf("recreate: deleted, but not created again: %w", err)
	}
	return applied, nil
}
