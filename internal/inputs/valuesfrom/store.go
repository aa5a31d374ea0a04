package valuesfrom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs"
	"github.com/chartwright/chartwright/internal/watches"
)

// Store caches the content of the sources of custom resources, as far as it is used. The
// zero Store is not usable; call NewStore. Its methods may be called concurrently.
type Store struct {
	read  Reader
	users *inputs.Tracker[Ref]

	// The other fields are guarded by users.

	// versions are the resourceVersions of the existing objects.
	versions map[Ref]string
	objects  map[Ref]*object
	// lastSecrets are the Secrets of a user's values when all sources were last usable.
	lastSecrets map[types.UID]Secrets
}

// Reader reads the data of an object from the API server.
type Reader func(context.Context, Ref) (Data, error)

// Data is the data of an object and its resourceVersion.
type Data struct {
	ResourceVersion string
	Keys            map[string][]byte
}

// NewStore returns an empty Store. It calls changed, without holding a lock, for each user
// of an object that was added, changed or deleted.
func NewStore(read Reader, changed func(types.UID)) *Store {
	return &Store{read: read, users: inputs.NewTracker[Ref](changed), versions: map[Ref]string{}, objects: map[Ref]*object{}, lastSecrets: map[types.UID]Secrets{}}
}

// Merge merges the sources of a custom resource into values, in their order. It returns the
// values and the secrets in them. From now on the custom resource is notified of changes of
// these sources, and of no others.
//
// An error of type Error is a problem of a source. Any other error is one of the API
// server, and the call may be retried. With an error, the secrets include those of the last
// usable sources, because the running release still contains them.
func (s *Store) Merge(ctx context.Context, user types.UID, from []Source, over map[string]any) (map[string]any, Secrets, error) {
	s.use(user, from)
	over, secrets, err := s.merge(ctx, from, over)
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	if err != nil {
		return nil, slices.Concat(secrets, s.lastSecrets[user]), err
	}
	if len(secrets) > 0 {
		s.lastSecrets[user] = secrets
	}
	return over, secrets, nil
}

func (s *Store) merge(ctx context.Context, from []Source, over map[string]any) (map[string]any, Secrets, error) {
	var secrets Secrets
	for _, source := range from {
		found, err := s.content(ctx, source)
		if errors.Is(err, errGone) {
			if source.Optional {
				continue
			}
			return nil, secrets, failf(api.ReasonValuesSourceMissing, "valuesFrom: %s does not exist: create it with the key %s", source.Ref, source.Key)
		}
		if err != nil {
			return nil, secrets, err
		}
		secrets = append(secrets, found.secrets...)
		if over, err = found.onto(over, source); err != nil {
			return nil, secrets, err
		}
	}
	return over, secrets, nil
}

// Versions returns a text that changes when an object of the sources is added, changed or
// deleted. It makes no request.
func (s *Store) Versions(from []Source) string {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	var text strings.Builder
	for _, source := range from {
		fmt.Fprintf(&text, "%s %s %s %s\n", source.Ref, source.Key, source.TargetPath, s.versions[source.Ref])
	}
	return text.String()
}

// Forget removes a custom resource.
func (s *Store) Forget(user types.UID) {
	s.use(user, nil)
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	delete(s.lastSecrets, user)
}

// use records the sources of a custom resource, and drops the content of objects that are
// no longer used.
func (s *Store) use(user types.UID, from []Source) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	refs := make([]Ref, len(from))
	for i, source := range from {
		refs[i] = source.Ref
	}
	for _, unused := range s.users.Set(user, refs) {
		delete(s.objects, unused)
	}
}

// errGone marks an object that does not exist.
var errGone = errors.New("not found")

// content returns the content of a source's key. It reads the object if the watch has seen
// a newer version.
func (s *Store) content(ctx context.Context, source Source) (content, error) {
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
	s.users.Mu.Unlock()
	if !exists {
		return content{}, errGone
	}
	found, err := known.get(ctx, s.read, source.Ref, source.Key, version)
	switch {
	case apierrors.IsNotFound(err):
		return content{}, errGone
	case apierrors.IsForbidden(err):
		return content{}, failf(api.ReasonValuesSourceForbidden, "valuesFrom: %s: the operator lacks the permission to get it: add a rule to the operator's role", source.Ref)
	case errors.Is(err, errSigningKey):
		return content{}, failf(api.ReasonValuesSourceForbidden, "valuesFrom: %s holds the signing key of an operator and cannot be a source of values: use another Secret", source.Ref)
	case err != nil:
		return content{}, fmt.Errorf("read %s: %w", source.Ref, err)
	}
	return found, nil
}

// errSigningKey marks a Secret that is never a source of values.
var errSigningKey = errors.New("the Secret holds the signing key of an operator")

// FromServer returns a Reader that reads from the API server as the operator. It refuses
// Secrets that hold the signing key of an operator; signingKey is that of this operator.
func FromServer(client typedcorev1.CoreV1Interface, signingKey types.NamespacedName) Reader {
	return func(ctx context.Context, ref Ref) (Data, error) {
		if ref.Kind == watches.SourceSecret {
			if signingKey == (types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) {
				return Data{}, errSigningKey
			}
			secret, err := client.Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
			if err != nil {
				return Data{}, err
			}
			if _, marked := secret.Labels[api.LabelSigningKey]; marked {
				return Data{}, errSigningKey
			}
			return Data{ResourceVersion: secret.ResourceVersion, Keys: secret.Data}, nil
		}
		configMap, err := client.ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return Data{}, err
		}
		keys := make(map[string][]byte, len(configMap.Data))
		for key, text := range configMap.Data {
			keys[key] = []byte(text)
		}
		return Data{ResourceVersion: configMap.ResourceVersion, Keys: keys}, nil
	}
}
