package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// lookAgain reads again what the templates of a revision have read, as they
// did: in the same name, as far as the kind's rules let them. It tells whether
// the answers are others.
func (r *run) lookAgain(ctx context.Context, of current) (bool, error) {
	text := r.driver.Annotations[of.record.Secret][release.AnnotationLookups]
	if text == "" || of.record.InputDigest == "" {
		// With no digest an upgrade is due already, or held back.
		return false, nil
	}
	var before []lookedUp
	if err := json.Unmarshal([]byte(text), &before); err != nil {
		// An annotation that somebody broke costs one upgrade.
		return true, nil //nolint:nilerr // see above
	}
	config, err := r.config.RESTClientGetter.ToRESTConfig()
	if err != nil {
		return false, err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return false, err
	}
	for _, one := range before {
		if _, ok := placeOf(one.Path); !ok {
			return true, nil
		}
		err := client.Get().AbsPath(one.Path).SetHeader("Accept", "application/json").Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("look up %s again: %w", one.Path, err)
		}
	}
	own, err := r.kube.builder.places(of.release)
	if err != nil {
		return false, err
	}
	now := map[string]string{}
	for _, one := range r.kube.readings.lookups(own) {
		now[one.Path] = one.Digest
	}
	return slices.ContainsFunc(before, func(one lookedUp) bool {
		digest, counts := now[one.Path]
		return counts && digest != one.Digest
	}), nil
}

// lookupGetter gives the template function lookup its access to the cluster:
// as the identity of the action, within its context, as far as the kind's
// allow block lets it, and reading nothing twice in one render.
type lookupGetter struct {
	ctx       context.Context
	config    *rest.Config
	scope     watches.LookupScope
	namespace string
	// readings is told what was read; nil is told nothing.
	readings *lookupRecord
}

var _ action.RESTClientGetter = lookupGetter{}

// ToRESTConfig returns a copy, for callers change it.
func (g lookupGetter) ToRESTConfig() (*rest.Config, error) {
	config := rest.CopyConfig(g.config)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	transport := &lookupTransport{getter: g, prefix: strings.TrimSuffix(base.Path, "/"), seen: map[string]answer{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		transport.next = boundTransport{ctx: g.ctx, next: next}
		return transport
	})
	return config, nil
}

// ToDiscoveryClient is not called, since the capabilities are preset.
func (g lookupGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return nil, errNotUsed
}

// ToRESTMapper is not called, since objects are built by our own client.
func (g lookupGetter) ToRESTMapper() (meta.RESTMapper, error) { return nil, errNotUsed }

var errNotUsed = fmt.Errorf("internal error: not used by any action")

// permits reports whether a path of the API may be read. Discovery may.
func (g lookupGetter) permits(path string) error {
	namespace, object := where(path)
	switch {
	case !object || g.scope == watches.LookupAll:
		return nil
	case g.scope == watches.LookupNone:
		return fmt.Errorf("%w: lookup of %s (allow.lookup is none)", ErrNotAllowed, path)
	case namespace == g.namespace:
		return nil
	default:
		return fmt.Errorf("%w: lookup of %s is outside the release's namespace %s (allow.lookup is own)", ErrNotAllowed, path, g.namespace)
	}
}

// where reads the namespace from a path of the API, empty for what has none,
// and whether the path is of objects and not of discovery:
// /api/v1/namespaces/<ns>/<resource>, /apis/<group>/<version>/<resource>, …
func where(path string) (namespace string, object bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if slices.Contains(parts, "..") {
		// Where it leads is for whoever resolves it to say.
		return "", true
	}
	prefix := 3
	if parts[0] == "api" {
		prefix = 2
	}
	if len(parts) <= prefix {
		return "", false
	}
	within := parts[prefix:]
	if within[0] == "namespaces" && len(within) > 1 {
		return within[1], true
	}
	return "", true
}

// lookupTransport refuses what a template may not read, and remembers what was read
// in one render: Helm requests discovery again for every lookup.
type lookupTransport struct {
	getter lookupGetter
	next   http.RoundTripper
	// prefix is of all paths, where the API server is behind another.
	prefix string
	mu     sync.Mutex
	seen   map[string]answer
}

type answer struct {
	response http.Response
	body     []byte
}

// RoundTrip answers from memory where it can. It fails with the rule that forbids
// the request.
func (t *lookupTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(request.URL.Path, t.prefix)
	if err := t.getter.permits(path); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := request.Method + " " + request.URL.String() + " " + request.Header.Get("Accept")
	known, ok := t.seen[key]
	if !ok {
		response, err := t.next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return nil, err
		}
		known = answer{response: *response, body: body}
		t.seen[key] = known
		if t.getter.readings != nil {
			t.getter.readings.note(path, response.StatusCode, body)
		}
	}
	response := known.response
	response.Request = request
	response.Header = known.response.Header.Clone()
	response.Body = io.NopCloser(bytes.NewReader(known.body))
	return &response, nil
}

// lookup returns the function by which the action's templates read the cluster.
func (r *run) lookup() render.Lookup {
	config := sync.OnceValues(r.config.RESTClientGetter.ToRESTConfig)
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		shared, err := config()
		if err != nil {
			return nil, err
		}
		found, err := engine.NewLookupFunction(shared)(apiVersion, kind, namespace, name)
		return r.kube.readings.readable(found), err
	}
}
