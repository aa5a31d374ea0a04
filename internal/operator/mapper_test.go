package operator

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{"a kind in any version that is served now", schema.GroupKind{Group: "apps", Kind: "Deployment"}, []string{""}, "deployments", meta.RESTScopeNameNamespace, []string{"/apis/apps", "/apis/apps/v1"}},
		{"another within the period", schema.GroupKind{Group: "apps", Kind: "Deployment"}, []string{""}, "deployments", meta.RESTScopeNameNamespace, nil},
		{"an unknown kind in any version", schema.GroupKind{Group: "apps", Kind: "Deploiment"}, []string{""}, "", "", nil},
		{"an unknown group in any version", schema.GroupKind{Group: "nobody.test", Kind: "Thing"}, []string{""}, "", "", []string{"/apis/nobody.test"}},
		{"a kind of any version", schema.GroupKind{Group: "batch", Kind: "Job"}, nil, "jobs", meta.RESTScopeNameNamespace, []string{"/apis/batch", "/apis/batch/v1"}},
		{"another of any version", schema.GroupKind{Group: "batch", Kind: "CronJob"}, nil, "cronjobs", meta.RESTScopeNameNamespace, nil},
		{"a kind of the core group", schema.GroupKind{Kind: "Service"}, nil, "services", meta.RESTScopeNameNamespace, []string{"/api/v1"}},
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

// kindsServer serves the versions of a group of custom resources, with the kinds of each. A
// version without kinds is unavailable.
type kindsServer struct {
	mu        sync.Mutex
	preferred []string
	kinds     map[string][]string
}

func (k *kindsServer) serve(preferred []string, kinds map[string][]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.preferred, k.kinds = preferred, kinds
}

func (k *kindsServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if request.URL.Path == "/apis/example.com" {
		group := metav1.APIGroup{Name: "example.com"}
		for _, version := range k.preferred {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: "example.com/" + version, Version: version})
		}
		_ = json.NewEncoder(w).Encode(group)
		return
	}
	version := strings.TrimPrefix(request.URL.Path, "/apis/example.com/")
	kinds, served := k.kinds[version]
	switch {
	case !served:
		http.NotFound(w, request)
		return
	case len(kinds) == 0:
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	list := metav1.APIResourceList{GroupVersion: "example.com/" + version}
	for _, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true})
	}
	_ = json.NewEncoder(w).Encode(list)
}

// TestMapper_FollowsServedVersions: a version that is no longer served is forgotten when its
// group is looked up, and a version that is unavailable hides no other version.
func TestMapper_FollowsServedVersions(t *testing.T) {
	served := &kindsServer{}
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	made, err := newMapper(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	m, ok := made.(*versionMapper)
	if !ok {
		t.Fatalf("the mapper is a %T", made)
	}
	expect := func(when, kind, version, want string) {
		t.Helper()
		var versions []string
		if version != "none" {
			versions = []string{version}
		}
		mapping, err := m.RESTMapping(schema.GroupKind{Group: "example.com", Kind: kind}, versions...)
		var got string
		switch {
		case meta.IsNoMatchError(err):
			got = "no match"
		case err != nil:
			got = "error"
		default:
			got = mapping.GroupVersionKind.Version
		}
		if got != want {
			t.Errorf("%s: version %q of %s is %s (%v), want %s", when, version, kind, got, err, want)
		}
	}
	later := func() { m.group("example.com").lookedUp = time.Time{} }

	served.serve([]string{"v1beta1"}, map[string][]string{"v1beta1": {"Widget"}})
	expect("at first", "Widget", "v1beta1", "v1beta1")
	expect("at first", "Widget", "none", "v1beta1")

	served.serve([]string{"v1", "v1beta1"}, map[string][]string{"v1": {"Widget"}, "v1beta1": {"Widget"}})
	later()
	expect("with a new version", "Widget", "none", "v1beta1")
	expect("with a new version", "Widget", "", "v1")

	// The version is served for another kind.
	served.serve([]string{"v1", "v1beta1"}, map[string][]string{"v1": {"Widget"}, "v1beta1": {"Gadget"}})
	later()
	expect("after the version lost the kind", "Widget", "", "v1")
	expect("after the version lost the kind", "Widget", "v1beta1", "no match")
	expect("after the version lost the kind", "Gadget", "none", "v1beta1")

	served.serve([]string{"v1"}, map[string][]string{"v1": {"Widget"}})
	later()
	expect("without the version", "Widget", "", "v1")
	expect("without the version", "Gadget", "v1beta1", "no match")

	served.serve([]string{"v2", "v1"}, map[string][]string{"v1": {"Widget"}, "v2": {}})
	later()
	expect("with an unavailable version", "Widget", "", "v1")
	expect("with an unavailable version", "Gadget", "", "error")
	expect("with an unavailable version", "Gadget", "none", "error")

	served.serve(nil, nil)
	expect("without the group", "Widget", "", "no match")
	expect("without the group", "Widget", "v1", "no match")
}
