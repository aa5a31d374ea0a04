package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verb is what a write does to an object.
type Verb string

// The verbs.
const (
	Create   Verb = "create"
	Change   Verb = "change"
	Recreate Verb = "recreate"
	Remove   Verb = "delete"
	// Leave ends the ownership of an object, which continues to exist.
	Leave Verb = "leave"
)

// Write is a write that a planning Client did not send.
type Write struct {
	Verb Verb
	Key
	// Before and After are the object before and after the write, nil if it does not exist
	// then.
	Before, After *unstructured.Unstructured
	// Unknown is why Before or After may differ from the content at the API server, for
	// example a missing permission; nil if they do not.
	Unknown error
}

// planned reports a write and returns true if the client plans. The object is read to
// report its content.
func (c Client) planned(ctx context.Context, verb Verb, o Object, after *unstructured.Unstructured) (bool, error) {
	if c.Plan == nil {
		return false, nil
	}
	before, err := c.Read(ctx, o)
	if err != nil && !apierrors.IsForbidden(err) {
		return true, err
	}
	c.Plan(Write{Verb: verb, Key: KeyOf(o), Before: before, After: after, Unknown: err})
	return true, nil
}

// planApply reports what an apply would write, and returns the metadata of the result. A
// dry run at the API server computes the result, with the defaults and the changes of
// admission. If the user may not do that, the result is the object itself.
func (c Client) planApply(ctx context.Context, o Object, options Options) (*metav1.PartialObjectMetadata, error) {
	before, unknown := c.Read(ctx, o)
	if unknown != nil && !apierrors.IsForbidden(unknown) {
		return nil, unknown
	}
	after, err := c.dryRun(ctx, o, options)
	answer := AnswerOf(err)
	absent := answer == Gone || answer == Unserved
	switch {
	case err == nil:
	case absent && before == nil && unknown == nil:
		// The plan also creates the namespace of the object, or its kind.
		after = o.Unstructured
	case absent, apierrors.IsForbidden(err):
		after, unknown = o.Unstructured, err
	default:
		return nil, err
	}
	if after == nil {
		after, unknown = o.Unstructured, errNoDryRun(o)
	}
	verb := Change
	if before == nil && unknown == nil {
		verb = Create
	}
	c.Plan(Write{Verb: verb, Key: KeyOf(o), Before: before, After: after, Unknown: unknown})
	return MetadataOf(after), nil
}

// MetadataOf returns the metadata of an object.
func MetadataOf(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(), OwnerReferences: o.GetOwnerReferences(), ManagedFields: o.GetManagedFields(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
	}}
}
