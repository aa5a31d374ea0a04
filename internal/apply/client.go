package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/api"
)

// ErrForeign marks an object that the owner does not own.
var ErrForeign = errors.New("the object is not owned by this release")

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

// Options of one apply.
type Options struct {
	// DryRun asks the API server without changing anything.
	DryRun bool
	// LeaveReplicas leaves spec.replicas to an autoscaler.
	LeaveReplicas bool
	// Warn is told, one sentence each, what had to be changed about the object
	// for the API server to take it; nil is told nothing.
	Warn func(string)
}

// maxAttempts bounds how often an object is mended; the API server names
// undeclared fields one at a time.
const maxAttempts = 20

// Apply creates the object or changes it to the given one, and takes over fields
// that others hold. It returns the metadata of the result.
//
// An object that server-side apply refuses and Helm's own patches would not is
// mended and sent again: see normalize, dropNulls, clearLeftovers and forceOwnership.
func (c Client) Apply(ctx context.Context, o Object, options Options) (*metav1.PartialObjectMetadata, error) {
	if options.LeaveReplicas {
		o.Unstructured = o.DeepCopy()
		unstructured.RemoveNestedField(o.Object, "spec", "replicas")
	}
	return persist(ctx, c, o, options, func(o Object) (*metav1.PartialObjectMetadata, error) {
		return c.patch(ctx, o, api.FieldManager, options.DryRun)
	})
}

// DryRun returns the object as an apply would change it, without changing anything.
func (c Client) DryRun(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	applied, err := persist(ctx, c, o, Options{DryRun: true}, func(o Object) (*unstructured.Unstructured, error) {
		return c.dynamic(o).Apply(ctx, o.GetName(), o.Unstructured, metav1.ApplyOptions{
			FieldManager: api.FieldManager, Force: true, DryRun: []string{metav1.DryRunAll},
		})
	})
	if err == nil && applied == nil {
		err = fmt.Errorf("apply %s: others have changed list items, so that a dry run cannot show the result", Describe(o))
	}
	return applied, err
}

// persist sends an object until the API server accepts it, or refuses it for
// something that cannot be mended. A dry run returns nil where only the real
// apply can show the result, for it takes over or removes fields of others.
func persist[T any](ctx context.Context, c Client, o Object, options Options, send func(Object) (*T, error)) (*T, error) {
	forced, cleared := false, false
	for range maxAttempts {
		applied, err := send(o)
		if err == nil {
			return applied, nil
		}
		if hasDuplicateItems(err) && !forced {
			if options.DryRun {
				return nil, nil
			}
			forced = true
			if err := c.forceOwnership(ctx, o); err != nil {
				return nil, err
			}
			continue
		}
		o.Unstructured = o.DeepCopy()
		changes := normalize(o.Unstructured, err.Error())
		for _, change := range changes {
			if options.Warn != nil {
				options.Warn(Describe(o) + ": " + change)
			}
		}
		again := len(changes) > 0 || dropNulls(o.Object, err)
		if !again && !cleared {
			cleared = true
			clearLeftovers := c.clearLeftovers
			if options.DryRun {
				clearLeftovers = c.omitLeftovers
			}
			var clearErr error
			again, clearErr = clearLeftovers(ctx, o, err)
			switch {
			case errors.Is(clearErr, errInconclusive):
				return nil, nil
			case clearErr != nil:
				return nil, fmt.Errorf("apply %s: %w", Describe(o), clearErr)
			}
		}
		if !again {
			return nil, fmt.Errorf("apply %s: %w", Describe(o), err)
		}
	}
	return nil, fmt.Errorf("apply %s: the API server refused it %d times, each for another reason", Describe(o), maxAttempts)
}

// hasDuplicateItems reports whether the API server found list items that collide: when
// somebody changes the key of an item of ours, an apply keeps theirs beside
// ours, and both have, say, the same name.
func hasDuplicateItems(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeFieldValueDuplicate
	})
}

// patch sends a server-side apply.
func (c Client) patch(ctx context.Context, o Object, manager string, dryRun bool) (*metav1.PartialObjectMetadata, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: manager, Force: new(true)}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return c.metadata(o).Patch(ctx, o.GetName(), types.ApplyPatchType, data, options)
}

// Create creates the object and fails where it exists. It is for hooks, where
// what is left of an earlier run must not pass for this one.
func (c Client) Create(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	created, err := c.dynamic(o).Create(ctx, o.Unstructured, metav1.CreateOptions{FieldManager: api.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", Describe(o), err)
	}
	return created, nil
}

// Get reads the metadata of the object as it is. It returns nil where there is
// none.
func (c Client) Get(ctx context.Context, o Object) (*metav1.PartialObjectMetadata, error) {
	live, err := c.metadata(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	return nilIfNotFound(o, live, err)
}

// Read reads the object as it is, whole. It returns nil where there is none.
func (c Client) Read(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	live, err := c.dynamic(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	return nilIfNotFound(o, live, err)
}

// nilIfNotFound is the answer to a read: nil, and no error, where nothing is there.
func nilIfNotFound[T any](o Object, live *T, err error) (*T, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", Describe(o), err)
	}
	return live, nil
}

func (c Client) metadata(o Object) metadata.ResourceInterface {
	return c.Metadata.Resource(o.Mapping.Resource).Namespace(o.scope())
}

func (c Client) dynamic(o Object) dynamic.ResourceInterface {
	return c.Dynamic.Resource(o.Mapping.Resource).Namespace(o.scope())
}

// scope returns the namespace of requests, empty for cluster-scoped objects.
func (o Object) scope() string {
	if o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return o.GetNamespace()
	}
	return ""
}
