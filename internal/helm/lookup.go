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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// lookupsChanged repeats the lookups of a revision's templates, with the same identity and
// under the kind's rules. It reports whether a result has changed.
func (r *run) lookupsChanged(ctx context.Context, of current) (bool, error) {
	text := r.driver.Annotations[of.record.Secret][release.AnnotationLookups]
	if text == "" || of.record.InputDigest == "" {
		// Without a digest, an upgrade is already due or held.
		return false, nil
	}
	var before []lookupResult
	if err := json.Unmarshal([]byte(text), &before); err != nil {
		// An invalid annotation costs one upgrade.
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
	return slices.ContainsFunc(before, func(one lookupResult) bool {
		digest, counts := now[one.Path]
		return counts && digest != one.Digest
	}), nil
}

// lookupGetter gives the template function lookup access to the cluster: with the
// identity and the context of the action, under the kind's allow block, and with a
// cache for one render.
type lookupGetter struct {
	ctx       context.Context
	config    *rest.Config
	scope     watches.LookupScope
	namespace string
	// readings records the results, unless it is nil.
	readings *lookupRecord
}

var _ engine.RESTClientGetter = lookupGetter{}

// ToRESTConfig returns a copy, because callers change it.
func (g lookupGetter) ToRESTConfig() (*rest.Config, error) {
	config := rest.CopyConfig(g.config)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	transport := &lookupTransport{getter: g, prefix: strings.TrimSuffix(base.Path, "/"), seen: map[string]cachedResponse{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		transport.next = boundTransport{ctx: g.ctx, next: next}
		return transport
	})
	return config, nil
}

// ToDiscoveryClient is not called, because the capabilities are preset.
func (g lookupGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return nil, errNotUsed
}

// ToRESTMapper is not called, because kubeClient builds the objects.
func (g lookupGetter) ToRESTMapper() (meta.RESTMapper, error) { return nil, errNotUsed }

var errNotUsed = fmt.Errorf("internal error: not used by any action")

// permits returns an error if the rules forbid reading an API path. Discovery is always
// permitted.
func (g lookupGetter) permits(path string) error {
	namespace, object := parseAPIPath(path)
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

// parseAPIPath returns the namespace of an API path, empty for cluster-scoped paths, and
// whether the path is of objects and not of discovery:
// /api/v1/namespaces/<ns>/<resource>, /apis/<group>/<version>/<resource>, and so on.
func parseAPIPath(path string) (namespace string, object bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if slices.Contains(parts, "..") {
		// The server may resolve the path to any other path.
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

// lookupTransport rejects forbidden requests and caches the responses of one render,
// because Helm repeats discovery for every lookup.
type lookupTransport struct {
	getter lookupGetter
	next   http.RoundTripper
	// prefix is the path prefix of the API server, for example behind a proxy.
	prefix string
	mu     sync.Mutex
	seen   map[string]cachedResponse
	// bytes and values are what the responses so far have.
	bytes, values int
}

// Limits of the requests for the lookups of one render, and of what they read, as JSON. Decoded,
// a key with a short value takes about 250 bytes.
const (
	maxLookupRequests = 1_000
	maxLookupBytes    = 8 << 20
	maxLookupValues   = 100_000
)

type cachedResponse struct {
	response http.Response
	body     []byte
}

// RoundTrip returns a cached response if possible. The error of a forbidden request
// names the rule.
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
		if len(t.seen) == maxLookupRequests {
			return nil, fmt.Errorf("the templates look up more than %d objects and lists, the last of them %s: look up lists instead of objects", maxLookupRequests, path)
		}
		response, err := t.next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		body, err := t.read(path, response)
		if err != nil {
			return nil, err
		}
		if _, object := parseAPIPath(path); object && response.StatusCode == http.StatusNotFound && !isAbsence(body) {
			return nil, apierrors.NewServiceUnavailable("look up " + path + ": the API server does not serve it at present")
		}
		known = cachedResponse{response: *response, body: body}
		// The client may repeat a request that the API server could not process.
		if temporary := response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError; !temporary {
			t.seen[key] = known
			if t.getter.readings != nil {
				t.getter.readings.note(path, response.StatusCode, body)
			}
		}
	}
	response := known.response
	response.Request = request
	response.Header = known.response.Header.Clone()
	response.Body = io.NopCloser(bytes.NewReader(known.body))
	return &response, nil
}

// read reads a response, within the limits.
func (t *lookupTransport) read(path string, response *http.Response) ([]byte, error) {
	defer func() { _ = response.Body.Close() }()
	left := maxLookupBytes - t.bytes
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(left)+1))
	if err != nil {
		return nil, err
	}
	t.bytes += len(body)
	if t.values += boundedyaml.JSONValues(body); t.bytes > maxLookupBytes || t.values > maxLookupValues {
		return nil, fmt.Errorf("the lookups of the templates read more than %d MiB or %d values, the last of them %s: look up single objects instead of lists, or delete objects", maxLookupBytes>>20, maxLookupValues, path)
	}
	return body, nil
}

// isAbsence reports whether the body of a 404 names an object that does not exist. For Helm, each
// 404 means that.
func isAbsence(body []byte) bool {
	answer := &apierrors.StatusError{}
	return json.Unmarshal(body, &answer.ErrStatus) == nil && apply.AnswerOf(answer) == apply.Gone
}

// lookup returns the lookup function for the action's templates.
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
