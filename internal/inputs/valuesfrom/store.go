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

// Store holds what the sources of custom resources hold, as far as it is used.
// The zero Store is not usable; call NewStore. Its methods may be called
// concurrently.
type Store struct {
	read  Reader
	users *inputs.Tracker[Ref]

	// The other fields are guarded by users.

	// versions are the resourceVersions of the objects that there are.
	versions map[Ref]string
	objects  map[Ref]*object
	// lastSecrets is what was secret of a user's values when they last were whole.
	lastSecrets map[types.UID]Secrets
}

// Reader reads the data of an object from the API server.
type Reader func(context.Context, Ref) (Data, error)

// Data is an object as it was read.
type Data struct {
	ResourceVersion string
	Keys            map[string][]byte
}

// NewStore returns a store that knows of no object. The function changed is
// called outside any lock.
func NewStore(read Reader, changed func(types.UID)) *Store {
	return &Store{read: read, users: inputs.NewTracker[Ref](changed), versions: map[Ref]string{}, objects: map[Ref]*object{}, lastSecrets: map[types.UID]Secrets{}}
}

// Merge lays what the sources of a custom resource hold over values, in their
// order, and returns the values and what is secret in them. From then on the
// custom resource is told of changes of these sources, and of no other.
//
// An Error says what is wrong with a source; any other is the API server's, and
// worth another try. What was secret before still is, for it still runs.
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
			return nil, secrets, failf(api.ReasonValuesSourceMissing, "values come from %s, which does not exist: create it, with the key %s", source.Ref, source.Key)
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

// Versions returns a text that differs if an object of the sources has come,
// changed or gone. It makes no request.
func (s *Store) Versions(from []Source) string {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	var text strings.Builder
	for _, source := range from {
		fmt.Fprintf(&text, "%s %s %s %s\n", source.Ref, source.Key, source.TargetPath, s.versions[source.Ref])
	}
	return text.String()
}

// Forget ends what a custom resource uses.
func (s *Store) Forget(user types.UID) {
	s.use(user, nil)
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	delete(s.lastSecrets, user)
}

// use notes what a custom resource uses, and drops what nobody uses any more.
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

// errGone marks an object that is not there.
var errGone = errors.New("not found")

// content returns what a key of a source holds: what is in memory, unless the
// watch has seen something newer.
func (s *Store) content(ctx context.Context, source Source) (content, error) {
	s.users.Mu.Lock()
	version, exists := s.versions[source.Ref]
	known := s.objects[source.Ref]
	if known == nil {
		known = &object{}
		// One that somebody else has forgotten meanwhile is nobody's.
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
		return content{}, failf(api.ReasonValuesSourceForbidden, "values come from %s, which the operator may not read: give it the right to get it", source.Ref)
	case errors.Is(err, errSigningKey):
		return content{}, failf(api.ReasonValuesSourceForbidden, "values come from %s, which holds the signing key of an operator: no values can come from it; name another Secret", source.Ref)
	case err != nil:
		return content{}, fmt.Errorf("read %s: %w", source.Ref, err)
	}
	return found, nil
}

// errSigningKey marks a Secret that values never come from.
var errSigningKey = errors.New("the Secret holds the signing key of an operator")

// FromServer reads objects from the API server, in the operator's own name. It
// refuses Secrets that hold the signing key of an operator; signingKey is that of
// this operator.
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
