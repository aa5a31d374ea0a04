package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/api"
)

// ErrForeign reports that the release does not own the object.
var ErrForeign = errors.New("the object is not owned by this release")

// ErrReplaced reports an apply that changed nothing, because another client has created,
// deleted or replaced the object since it was read.
var ErrReplaced = errors.New("another client has created, deleted or replaced the object")

// Object is an object with the mapping of its kind to a resource. The mapping of an object in
// a release record may have another version than the object: one that is served now.
type Object struct {
	*unstructured.Unstructured
	Mapping *meta.RESTMapping
}

// Client writes objects. Its methods return when their context ends.
type Client struct {
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
	// Plan, if not nil, makes the client send no write but a dry run. It is called with
	// each write instead.
	Plan func(Write)
	// Served, if not nil, returns the resource of a kind in a version that the API server
	// serves now. The error is a NoMatch error if it serves none.
	Served func(schema.GroupKind) (*meta.RESTMapping, error)
}

// Options are the options of one apply.
type Options struct {
	// UID is the UID of the live object, which the caller has checked to be one that it may
	// change. If it is empty, the object must not exist. Otherwise the error is ErrReplaced.
	// Dry runs and plans change nothing, and ignore it.
	UID types.UID
	// DryRun sends the apply as a dry run.
	DryRun bool
	// LeaveReplicas omits spec.replicas, because an autoscaler sets it.
	LeaveReplicas bool
	// Ignored are the segments of JSON pointers to fields of list items that other clients may
	// change; an item is an index, or one of its fields, such as name=web.
	Ignored [][]string
	// Warn, if not nil, is called with a sentence for each change to the object that was
	// necessary for the API server to accept it.
	Warn func(string)
	// polite takes over no fields: the apply fails if another manager has changed one.
	polite bool
}

// maxAttempts limits the number of requests for one object. The API server names undeclared
// fields one at a time.
const maxAttempts = 20

// Apply creates or changes the object, and takes over conflicting fields. It returns the
// metadata of the result. The error is ErrReplaced if the live object is not the one that
// the options name, or was changed by another client at the same time.
//
// Server-side apply rejects some objects that Helm's own patches can write. Apply changes
// such objects and sends them again: see normalize, dropNulls, clearLeftovers and
// forceOwnership.
func (c Client) Apply(ctx context.Context, o Object, options Options) (*metav1.PartialObjectMetadata, error) {
	if options.LeaveReplicas {
		o.Unstructured = o.DeepCopy()
		unstructured.RemoveNestedField(o.Object, "spec", "replicas")
	}
	// An object of which another client has changed nothing costs no further request.
	yields := hasNothing(o.Object) && options.UID != "" && !options.DryRun
	if len(options.ignored(o.Unstructured)) > 0 || yields && c.Plan != nil {
		var err error
		if o, err = c.yield(ctx, o, options); err != nil {
			return nil, err
		}
		yields = false
	}
	if c.Plan != nil && !options.DryRun {
		return c.planApply(ctx, o, options)
	}
	if yields {
		polite := options
		polite.polite = true
		applied, err := c.patch(ctx, o, api.FieldManager, polite)
		switch {
		case err == nil:
			return applied, nil
		case isFieldConflict(err):
			if o, err = c.yield(ctx, o, options); err != nil {
				return nil, err
			}
		}
	}
	return persist(ctx, c, o, options, func(o Object) (*metav1.PartialObjectMetadata, error) {
		return c.patch(ctx, o, api.FieldManager, options)
	})
}

// expects reports whether an apply may change a live object.
func (options Options) expects(live metav1.Object) bool {
	return options.DryRun || live.GetUID() == options.UID
}

// impossibleVersion is a resourceVersion that no object has: the first revision that etcd
// assigns to a write is 2.
const impossibleVersion = "1"

// conditional returns the content of an apply with the precondition of the options. With a
// UID, the API server rejects the apply if the object is gone or is another one. With a
// resourceVersion that no object has, it rejects the apply if the object exists. Unlike a
// POST, such an apply adds an Apply entry of the field manager.
func (options Options) conditional(object map[string]any) map[string]any {
	if options.DryRun {
		return object
	}
	metadata, _ := object["metadata"].(map[string]any)
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	object["metadata"] = metadata
	if options.UID == "" {
		metadata["resourceVersion"] = impossibleVersion
	} else {
		metadata["uid"] = string(options.UID)
	}
	return object
}

// DryRun returns the object as an apply would change it.
func (c Client) DryRun(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	applied, err := c.dryRun(ctx, o, Options{})
	if err == nil && applied == nil {
		err = errNoDryRun(o)
	}
	return applied, err
}

// dryRun returns the object as an apply would change it, and nil if a dry run cannot show
// the result.
func (c Client) dryRun(ctx context.Context, o Object, options Options) (*unstructured.Unstructured, error) {
	options.DryRun = true
	return persist(ctx, c, o, options, func(o Object) (*unstructured.Unstructured, error) {
		return c.dynamic(o).Apply(ctx, o.GetName(), o.Unstructured, metav1.ApplyOptions{
			FieldManager: api.FieldManager, Force: true, DryRun: []string{metav1.DryRunAll},
		})
	})
}

func errNoDryRun(o Object) error {
	return fmt.Errorf("apply %s: a dry run cannot show the result, because other field managers have changed list items", Describe(o))
}

// persist sends an object, and changes it after each rejection that it can resolve, until
// the API server accepts it. For a dry run, it returns nil if only a real apply can show
// the result, because the apply takes over or removes fields of other managers.
func persist[T any](ctx context.Context, c Client, o Object, options Options, send func(Object) (*T, error)) (*T, error) {
	var last error
	forced, cleared := false, false
	o, moved := o.inServedVersion(options.Warn)
	for range maxAttempts {
		applied, err := send(o)
		if err == nil {
			return applied, nil
		}
		last = err
		switch answer := o.answerOf(err); {
		case answer == ConflictElsewhere:
			if err := Pause(ctx, rand.N(maxPause)); err != nil {
				return nil, fmt.Errorf("apply %s: %w", Describe(o), err)
			}
			continue
		case answer == Conflict && !options.DryRun:
			return nil, fmt.Errorf("apply %s: %w: %w", Describe(o), ErrReplaced, err)
		}
		if hasDuplicateItems(err) && !forced {
			if options.DryRun {
				return nil, nil
			}
			forced = true
			if err := c.forceOwnership(ctx, o, options); err != nil {
				return nil, err
			}
			continue
		}
		o.Unstructured = o.DeepCopy()
		again := !moved && options.normalize(o, err) || dropNulls(o.Object, err)
		if !again && !cleared {
			cleared = true
			clearLeftovers := c.clearLeftovers
			if options.DryRun {
				clearLeftovers = c.omitLeftovers
			}
			var clearErr error
			again, clearErr = clearLeftovers(ctx, o, options, err)
			switch {
			case errors.Is(clearErr, errInconclusive):
				return nil, nil
			case clearErr != nil:
				return nil, fmt.Errorf("apply %s: %w", Describe(o), clearErr)
			}
		}
		if !again {
			return nil, fmt.Errorf("apply %s: %w", Describe(o), c.explainUnserved(o, err))
		}
	}
	return nil, fmt.Errorf("apply %s: rejected %d times: %w", Describe(o), maxAttempts, last)
}

// normalize changes a rejected object as the function of this name does. It reports whether it
// has changed the object.
func (options Options) normalize(o Object, rejection error) bool {
	changes := normalize(o.Unstructured, rejection.Error())
	for _, change := range changes {
		if options.Warn != nil {
			options.Warn(Describe(o) + ": " + change)
		}
	}
	return len(changes) > 0
}

// maxPause is the longest wait for other clients that change the same object. The API server
// itself has tried several times.
const maxPause = 100 * time.Millisecond

// hasDuplicateItems reports whether the API server rejected duplicate list items. If another
// client changes the key of a list item that the operator applied, the next apply adds an
// item with the old key, and both may have the same name.
func hasDuplicateItems(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeFieldValueDuplicate
	})
}

// patch sends a server-side apply request.
func (c Client) patch(ctx context.Context, o Object, manager string, options Options) (*metav1.PartialObjectMetadata, error) {
	data, err := json.Marshal(options.conditional(o.Object))
	if err != nil {
		return nil, err
	}
	patch := metav1.PatchOptions{FieldManager: manager, Force: new(!options.polite)}
	if options.DryRun {
		patch.DryRun = []string{metav1.DryRunAll}
	}
	return c.metadata(o).Patch(ctx, o.GetName(), types.ApplyPatchType, data, patch)
}

// Get returns the metadata of the live object, or nil if it does not exist.
func (c Client) Get(ctx context.Context, o Object) (*metav1.PartialObjectMetadata, error) {
	live, err := served(c, o, func(o Object) (*metav1.PartialObjectMetadata, error) {
		return c.metadata(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	})
	return nilIfGone(o, live, err)
}

// Read returns the live object, or nil if it does not exist.
func (c Client) Read(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	live, err := served(c, o, func(o Object) (*unstructured.Unstructured, error) {
		return c.dynamic(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	})
	return nilIfGone(o, live, err)
}

// nilIfGone returns the result of a read, and nil without an error if the object does not
// exist.
func nilIfGone[T any](o Object, live *T, err error) (*T, error) {
	switch {
	case AnswerOf(err) == Gone:
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

// scope returns the namespace for requests, or "" for cluster-scoped objects.
func (o Object) scope() string {
	if o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return o.GetNamespace()
	}
	return ""
}
