package operator

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/testenv"
)

// asked records the paths of requests.
type asked struct {
	next http.RoundTripper

	mu    sync.Mutex
	paths []string
}

func (a *asked) RoundTrip(request *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paths = append(a.paths, request.URL.Path)
	return a.next.RoundTrip(request)
}

// since returns the paths since the last call.
func (a *asked) since() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	paths := a.paths
	a.paths = nil
	return paths
}

func TestMapper_ReadsRequestedVersionOnly(t *testing.T) {
	env := testenv.Shared(t)
	requests := &asked{}
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		requests.next = next
		return requests
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMapper(config, client)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		kind     schema.GroupKind
		versions []string
		want     string
		scope    meta.RESTScopeName
		asks     []string
	}{
		{"a kind", schema.GroupKind{Kind: "ConfigMap"}, []string{"v1"}, "configmaps", meta.RESTScopeNameNamespace, []string{"/api/v1"}},
		{"another of that version", schema.GroupKind{Kind: "Namespace"}, []string{"v1"}, "namespaces", meta.RESTScopeNameRoot, nil},
		{"a kind of a group", schema.GroupKind{Group: "apps", Kind: "Deployment"}, []string{"v1"}, "deployments", meta.RESTScopeNameNamespace, []string{"/apis/apps/v1"}},
		{"an unknown kind", schema.GroupKind{Group: "apps", Kind: "Deploiment"}, []string{"v1"}, "", "", []string{"/apis/apps/v1"}},
		{"an unknown version", schema.GroupKind{Group: "apps", Kind: "Deployment"}, []string{"v9"}, "", "", []string{"/apis/apps/v9"}},
		{"an unknown group", schema.GroupKind{Group: "nobody.test", Kind: "Thing"}, []string{"v1"}, "", "", []string{"/apis/nobody.test/v1"}},
		{"what is known still", schema.GroupKind{Group: "apps", Kind: "Deployment"}, []string{"v1"}, "deployments", meta.RESTScopeNameNamespace, nil},
		{"a kind in any version that is served now", schema.GroupKind{Group: "apps", Kind: "Deployment"}, []string{""}, "deployments", meta.RESTScopeNameNamespace, []string{"/api", "/apis", "/apis/apps/v1"}},
		{"an unknown kind in any version", schema.GroupKind{Group: "apps", Kind: "Deploiment"}, []string{""}, "", "", []string{"/api", "/apis", "/apis/apps/v1"}},
		{"an unknown group in any version", schema.GroupKind{Group: "nobody.test", Kind: "Thing"}, []string{""}, "", "", []string{"/api", "/apis"}},
		{"a kind of any version", schema.GroupKind{Group: "batch", Kind: "Job"}, nil, "jobs", meta.RESTScopeNameNamespace, []string{"/api", "/apis"}},
	} {
		requests.since()
		mapping, err := m.RESTMapping(test.kind, test.versions...)
		switch {
		case test.want == "" && !meta.IsNoMatchError(err):
			t.Errorf("%s: got %v, %v; want a NoMatch error", test.name, mapping, err)
		case test.want != "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (mapping.Resource.Resource != test.want || mapping.Scope.Name() != test.scope):
			t.Errorf("%s: got %s, %s; want %s, %s", test.name, mapping.Resource.Resource, mapping.Scope.Name(), test.want, test.scope)
		}
		if got := requests.since(); !slices.Equal(got, test.asks) {
			t.Errorf("%s: requested %v, want %v", test.name, got, test.asks)
		}
	}
}

// TestMapper_KindsWithoutStatus expects the mapper to know from the same request which kinds
// have no status subresource.
func TestMapper_KindsWithoutStatus(t *testing.T) {
	env := testenv.Shared(t)
	client, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	made, err := newMapper(env.Config, client)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := made.(*versionMapper)
	if !ok {
		t.Fatalf("the mapper is a %T", made)
	}
	for gvk, want := range map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "ConfigMap"}:                   true,
		{Version: "v1", Kind: "Service"}:                     false,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:   false,
		{Group: "nobody.test", Version: "v1", Kind: "Thing"}: false,
	} {
		if got := m.noStatus(gvk); got != want {
			t.Errorf("%s is served without a status: %v, want %v", gvk, got, want)
		}
	}
}

// away is an API server that is unavailable.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("unavailable") }

// TestMapper_ReportsServerError: an unavailable server is not a NoMatch error.
func TestMapper_ReportsServerError(t *testing.T) {
	m, err := newMapper(&rest.Config{Host: "https://nowhere.test"}, &http.Client{Transport: away{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1")
	if err == nil || meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "apps/v1") || !strings.Contains(err.Error(), "unavailable") {
		t.Errorf("the error is %v; want one that names the version and the cause", err)
	}
}
