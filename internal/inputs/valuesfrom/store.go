package valuesfrom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inputs"
)

// Store caches the content of the sources of custom resources, as far as it is used. The
// zero Store is not usable; call NewStore. Its methods may be called concurrently.
type Store struct {
	read  Reader
	users *inputs.Tracker[Ref]
	// cached limits parts without secrets, and secret the others and the lists of users.
	cached, secret *inputs.Budget

	// The other fields are guarded by users.

	// versions are the resourceVersions of the existing objects.
	versions map[Ref]string
	objects  map[Ref]*object
	// kinds are the watched kinds.
	kinds map[schema.GroupVersionKind]*watched
	// kept are the parts of objects.
	kept map[Ref][]*content
	// last are the parts of Secrets in a user's values when all sources were last usable.
	last map[types.UID][]*content
	// holders counts how often each part occurs in kept and last.
	holders map[*content]int
}

// Reader reads an object from the API server.
type Reader func(context.Context, Ref) (*unstructured.Unstructured, error)

// NewStore returns an empty Store. It calls changed, without holding a lock, for each user
// of an object that was added, changed or deleted.
func NewStore(read Reader, changed func(types.UID)) *Store {
	return &Store{
		read: read, cached: inputs.NewBudget(inputs.CachedLimits), secret: inputs.NewBudget(inputs.SecretLimits), users: inputs.NewTracker[Ref](changed), versions: map[Ref]string{}, objects: map[Ref]*object{},
		kinds: map[schema.GroupVersionKind]*watched{}, kept: map[Ref][]*content{}, last: map[types.UID][]*content{}, holders: map[*content]int{},
	}
}

// Merge merges the sources of a custom resource into values, in their order. It returns the
// values and the secrets in them. From now on the custom resource is notified of changes of
// these sources, and of no others.
//
// An error of type Error is a problem of a source. Any other error is one of the API
// server, or an exceeded limit of memory, and the call may be retried. With an error, the
// secrets include those of the last usable sources, because the running release still contains
// them.
func (s *Store) Merge(ctx context.Context, user types.UID, from []Source, over map[string]any) (map[string]any, Secrets, error) {
	from = s.use(user, from)
	over, parts, err := s.merge(ctx, from, over)
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	secrets := allSecrets(parts)
	if err == nil && len(secrets) > 0 {
		err = s.replaceLast(user, parts)
	}
	if err != nil {
		return nil, slices.Concat(secrets, allSecrets(s.last[user])), err
	}
	return over, secrets, nil
}

// merge returns the values and the parts of Secrets in them.
func (s *Store) merge(ctx context.Context, from []Source, over map[string]any) (map[string]any, []*content, error) {
	var parts []*content
	for _, source := range from {
		found, err := s.content(ctx, source)
		missing := isMissingObject(err)
		if err == nil && found.missing != "" {
			// An optional object must have the key, which may be misspelled.
			missing, err = source.Expression != nil, found.absent(source)
		}
		if missing && source.Optional {
			continue
		}
		if err != nil {
			return nil, parts, err
		}
		if len(found.secrets) > 0 {
			parts = append(parts, found)
		}
		if over, err = found.onto(over, source); err != nil {
			return nil, parts, err
		}
	}
	return over, parts, nil
}

// Versions returns a text that changes when an object of the sources is added, changed or
// deleted. It makes no request.
func (s *Store) Versions(from []Source) string {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	var text strings.Builder
	for _, source := range from {
		source = s.scoped(source)
		fmt.Fprintf(&text, "%s %s %q %s %s\n", source.Kind, source.Ref, source.partID(), source.TargetPath, s.versions[source.Ref])
	}
	return text.String()
}

// Saw records that an object has a resourceVersion that another watch has delivered.
func (s *Store) Saw(ref Ref, resourceVersion string) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	if known, exists := s.versions[ref]; exists && api.IsNewer(resourceVersion, known) {
		s.versions[ref] = resourceVersion
	}
}

// Forget removes a custom resource.
func (s *Store) Forget(user types.UID) {
	s.use(user, nil)
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	s.releaseLast(user)
}

// use records the sources of a custom resource, and drops the content of objects that are
// no longer used. It returns the sources with the namespaces of their objects.
func (s *Store) use(user types.UID, from []Source) []Source {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	refs, scoped := make([]Ref, len(from)), make([]Source, len(from))
	for i, source := range from {
		scoped[i] = s.scoped(source)
		refs[i] = scoped[i].Ref
	}
	for _, unused := range s.users.Set(user, refs) {
		s.drop(unused)
	}
	return scoped
}

// content returns the part of an object that a source uses. It reads the object if the watch
// has seen a newer version.
func (s *Store) content(ctx context.Context, source Source) (*content, error) {
	s.users.Mu.Lock()
	version, exists := s.versions[source.Ref]
	known := s.objects[source.Ref]
	if known == nil {
		known = &object{}
		// The custom resource may have been forgotten concurrently.
		if s.users.Used(source.Ref) {
			s.objects[source.Ref] = known
		}
	}
	var absent error
	if !exists {
		absent = s.kinds[source.Kind].notFound(source)
	}
	s.users.Mu.Unlock()
	if absent != nil {
		return nil, absent
	}
	found, all, err := known.get(ctx, s.read, source, version)
	s.keep(source.Ref, known, all)
	switch {
	case apply.AnswerOf(err) == apply.Gone:
		return nil, (*watched)(nil).notFound(source)
	case apierrors.IsForbidden(err):
		return nil, source.failf(api.ReasonValuesSourceForbidden, "%s: the operator lacks the permission to get it: add a rule to the operator's role", source.Ref)
	case errors.Is(err, errSigningKey):
		return nil, source.failf(api.ReasonValuesSourceForbidden, "%s holds the signing key of an operator and cannot be a source of values: use another Secret", source.Ref)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", source.Ref, err)
	}
	return found, nil
}

// isMissingObject reports whether the object of a source does not exist.
func isMissingObject(err error) bool {
	problem, ok := errors.AsType[*Error](err)
	return ok && problem.Reason == api.ReasonValuesSourceMissing
}

// errSigningKey marks a Secret that is never a source of values.
var errSigningKey = errors.New("the Secret holds the signing key of an operator")

// FromServer returns a Reader that reads from the API server as the operator. It refuses
// Secrets that hold the signing key of an operator; signingKey is that of this operator.
func FromServer(client dynamic.Interface, mapper meta.RESTMapper, signingKey types.NamespacedName) Reader {
	return func(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
		if ref.isSecret() && signingKey == ref.namespacedName() {
			return nil, errSigningKey
		}
		mapping, err := mapper.RESTMapping(ref.Kind.GroupKind(), ref.Kind.Version)
		if err != nil {
			return nil, err
		}
		var objects dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			objects = client.Resource(mapping.Resource).Namespace(ref.Namespace)
		}
		object, err := objects.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if _, marked := object.GetLabels()[api.LabelSigningKey]; marked && ref.isSecret() {
			return nil, errSigningKey
		}
		return object, nil
	}
}
