package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/api"
)

// ErrForeign marks an object that belongs to somebody else.
var ErrForeign = errors.New("the object belongs to another owner")

// Object is an object and where it lives in the API.
type Object struct {
	*unstructured.Unstructured
	Mapping *meta.RESTMapping
}

// Client writes objects. Its methods end when their context does.
type Client struct {
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
}

// Apply creates the object or changes it to what is given, taking over fields
// that others hold, and returns the metadata of the result.
func (c Client) Apply(ctx context.Context, o Object) (*metav1.PartialObjectMetadata, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Describe(o.Unstructured), err)
	}
	force := true
	applied, err := c.metadata(o).Patch(ctx, o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: api.FieldManager,
		Force:        &force,
	})
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", Describe(o.Unstructured), err)
	}
	return applied, nil
}

// Create creates the object and fails where it exists. It is for hooks, where
// what is left of an earlier run must not pass for this one.
func (c Client) Create(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	created, err := c.dynamic(o).Create(ctx, o.Unstructured, metav1.CreateOptions{FieldManager: api.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", Describe(o.Unstructured), err)
	}
	return created, nil
}

// Delete deletes the object unless it belongs to another owner, and returns
// whether it is gone already. An object that is not there, or whose kind is
// not, counts as gone. The error is ErrForeign where the object is another's.
func (c Client) Delete(ctx context.Context, o Object, owner types.UID, policy metav1.DeletionPropagation) (bool, error) {
	live, err := c.metadata(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get %s: %w", Describe(o.Unstructured), err)
	}
	if err := belongs(live, owner); err != nil {
		return false, fmt.Errorf("delete %s: %w", Describe(o.Unstructured), err)
	}
	uid := live.GetUID()
	err = c.metadata(o).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &policy,
	})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// A conflict means another object took the name meanwhile.
		return true, nil
	case err != nil:
		return false, fmt.Errorf("delete %s: %w", Describe(o.Unstructured), err)
	}
	return false, nil
}

// belongs tells whether a live object may be deleted for the owner. One that
// carries no owner label, because somebody removed it, may.
func belongs(live *metav1.PartialObjectMetadata, owner types.UID) error {
	for _, key := range []string{api.LabelOwnerUID, api.LabelHookOwnerUID} {
		if uid := live.Labels[key]; uid != "" && uid != string(owner) {
			return fmt.Errorf("%w: %s", ErrForeign, live.Annotations[api.AnnotationOwner])
		}
	}
	return nil
}

// pollInterval is how often a deletion that was asked for is looked at.
const pollInterval = 200 * time.Millisecond

// WaitGone waits until the object is gone or the context ends.
func (c Client) WaitGone(ctx context.Context, o Object) error {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := c.metadata(o).Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s is gone: %w", Describe(o.Unstructured), err)
	}
	return nil
}

func (c Client) metadata(o Object) metadata.ResourceInterface {
	resource := c.Metadata.Resource(o.Mapping.Resource)
	if o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(o.GetNamespace())
	}
	return resource
}

func (c Client) dynamic(o Object) dynamic.ResourceInterface {
	resource := c.Dynamic.Resource(o.Mapping.Resource)
	if o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(o.GetNamespace())
	}
	return resource
}
