package helm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/watches"
)

func TestLookup_PermittedPaths(t *testing.T) {
	const none, own, all = watches.LookupNone, watches.LookupOwn, watches.LookupAll
	for _, test := range []struct {
		name, path string
		// permitted holds the scopes that permit the path.
		permitted []watches.LookupScope
	}{
		{"an object", "/api/v1/namespaces/apps/secrets/a", []watches.LookupScope{own, all}},
		{"a list", "/api/v1/namespaces/apps/secrets", []watches.LookupScope{own, all}},
		{"an object of a group", "/apis/apps/v1/namespaces/apps/deployments/a", []watches.LookupScope{own, all}},
		{"a subresource", "/apis/apps/v1/namespaces/apps/deployments/a/scale", []watches.LookupScope{own, all}},
		{"the namespace itself", "/api/v1/namespaces/apps", []watches.LookupScope{own, all}},
		{"an object in another namespace", "/api/v1/namespaces/kube-system/secrets/a", []watches.LookupScope{all}},
		{"an object of a group in another namespace", "/apis/apps/v1/namespaces/other/deployments/a", []watches.LookupScope{all}},
		{"another namespace itself", "/api/v1/namespaces/other", []watches.LookupScope{all}},
		{"a namespace with the same prefix", "/api/v1/namespaces/apps-2/secrets/a", []watches.LookupScope{all}},
		{"all namespaces", "/api/v1/namespaces", []watches.LookupScope{all}},
		{"a list of objects in all namespaces", "/api/v1/secrets", []watches.LookupScope{all}},
		{"a list of objects of a group in all namespaces", "/apis/apps/v1/deployments", []watches.LookupScope{all}},
		{"a cluster-scoped object", "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin", []watches.LookupScope{all}},
		{"a cluster-scoped object with the name of the namespace", "/api/v1/nodes/apps", []watches.LookupScope{all}},
		{"a resource of a group with the name namespaces", "/apis/example.com/v1/namespaces", []watches.LookupScope{all}},
		{"a path with ..", "/api/v1/namespaces/apps/../other/secrets/a", []watches.LookupScope{all}},
		{"a discovery path with ..", "/api/..", []watches.LookupScope{all}},
		{"a path with an empty segment", "/api/v1/namespaces//secrets", []watches.LookupScope{all}},
		{"a watch of another namespace", "/api/v1/watch/namespaces/other/secrets", []watches.LookupScope{all}},
		{"discovery of the core", "/api/v1", []watches.LookupScope{none, own, all}},
		{"discovery of its versions", "/api", []watches.LookupScope{none, own, all}},
		{"discovery of the groups", "/apis", []watches.LookupScope{none, own, all}},
		{"discovery of a group", "/apis/apps", []watches.LookupScope{none, own, all}},
		{"discovery of its version", "/apis/apps/v1", []watches.LookupScope{none, own, all}},
		{"discovery with a slash", "/apis/apps/v1/", []watches.LookupScope{none, own, all}},
	} {
		for _, scope := range []watches.LookupScope{"", none, own, all} {
			err := lookupGetter{scope: scope, namespace: "apps"}.permits(test.path)
			permitted := false
			for _, s := range test.permitted {
				// An empty scope means own.
				permitted = permitted || s == scope || s == own && scope == ""
			}
			if permitted != (err == nil) {
				t.Errorf("%s, with scope %q: %v", test.name, scope, err)
			}
			if err == nil {
				continue
			}
			rule := "(allow.lookup is own)"
			if scope == none {
				rule = "(allow.lookup is none)"
			}
			if !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), test.path) || !strings.HasSuffix(err.Error(), rule) {
				t.Errorf("%s, with scope %q: %v, want an error with the path and the rule", test.name, scope, err)
			}
		}
	}
}

// counting is an API server that counts requests.
type counting struct {
	mu   sync.Mutex
	seen []string
	err  error
	// body is the body of each response; if it is empty, the responses differ.
	body string
}

func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, request.Method+" "+request.URL.RequestURI())
	if c.err != nil {
		return nil, c.err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"X-Test": {"a"}},
		Body: io.NopCloser(strings.NewReader(c.answer(request.URL.Path))),
	}, nil
}

func (c *counting) answer(path string) string {
	if c.body != "" {
		return c.body
	}
	return fmt.Sprintf("%s, request %d", path, len(c.seen))
}

func ask(t *testing.T, transport http.RoundTripper, path, accept string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.Request != request {
		t.Error("the response belongs to another request")
	}
	// A change of one response must not change the next.
	if response.Header.Get("X-Test") != "a" {
		t.Errorf("the headers are %v", response.Header)
	}
	response.Header.Set("X-Test", "b")
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

// One render reads each path once; the next render reads it again.
func TestLookup_CachesResponsesOfOneRender(t *testing.T) {
	transport := func(c *counting) http.RoundTripper {
		getter := lookupGetter{ctx: t.Context(), config: &rest.Config{Host: "https://example.com"}, scope: watches.LookupOwn, namespace: "apps"}
		config, err := getter.ToRESTConfig()
		if err != nil {
			t.Fatal(err)
		}
		if getter.config.WrapTransport != nil {
			t.Error("the operator's own configuration was changed")
		}
		return config.WrapTransport(c)
	}
	var c counting
	first := transport(&c)
	const secret = "/api/v1/namespaces/apps/secrets/a"
	for _, step := range []struct{ path, accept, want string }{
		{secret, "json", secret + ", request 1"},
		{secret, "json", secret + ", request 1"},
		{secret + "?limit=1", "json", secret + ", request 2"},
		{"/api/v1", "json", "/api/v1, request 3"},
		{secret, "json", secret + ", request 1"},
		{secret, "yaml", secret + ", request 4"},
		{"/api/v1", "json", "/api/v1, request 3"},
	} {
		got, err := ask(t, first, step.path, step.accept)
		if err != nil || got != step.want {
			t.Errorf("%s as %s: %q, %v, want %q", step.path, step.accept, got, err, step.want)
		}
	}
	if _, err := ask(t, first, "/api/v1/namespaces/other/secrets/a", "json"); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("another namespace: %v", err)
	}
	if got, err := ask(t, transport(&c), secret, "json"); err != nil || got != secret+", request 5" {
		t.Errorf("the next render: %q, %v", got, err)
	}
	want := []string{"GET " + secret, "GET " + secret + "?limit=1", "GET /api/v1", "GET " + secret, "GET " + secret}
	if diff := cmp.Diff(want, c.seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestLookup_LimitsWhatOneRenderReads: a tenant can create any number of objects that a
// template of the chart looks up.
func TestLookup_LimitsWhatOneRenderReads(t *testing.T) {
	for name, body := range map[string]string{
		"bytes":  `{"a":"` + strings.Repeat("x", maxLookupBytes/2-100) + `"}`,
		"values": `[` + strings.Repeat("0,", maxLookupValues/3) + `0]`,
	} {
		t.Run(name, func(t *testing.T) {
			c := counting{body: body}
			render := &lookupTransport{next: &c, seen: map[string]cachedResponse{}, getter: lookupGetter{namespace: "apps"}}
			for i := range 2 {
				if _, err := ask(t, render, fmt.Sprintf("/api/v1/namespaces/apps/secrets/%d", i), ""); err != nil {
					t.Error(err)
				}
			}
			_, err := ask(t, render, "/api/v1/namespaces/apps/secrets", "")
			if err == nil || !strings.Contains(err.Error(), "the last of them /api/v1/namespaces/apps/secrets: look up single objects") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestLookup_LimitsRequestsOfOneRender(t *testing.T) {
	c := counting{body: "{}"}
	render := &lookupTransport{next: &c, seen: map[string]cachedResponse{}, getter: lookupGetter{namespace: "apps"}}
	for i := range maxLookupRequests {
		// Only the first of equal lookups is a request.
		for range 2 {
			if _, err := ask(t, render, fmt.Sprintf("/api/v1/namespaces/apps/secrets/%d", i), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := ask(t, render, "/api/v1/namespaces/apps/secrets/last", "")
	if err == nil || !strings.Contains(err.Error(), "more than 1000 objects and lists, the last of them /api/v1/namespaces/apps/secrets/last") {
		t.Errorf("error %v", err)
	}
}

func TestLookup_DoesNotCacheErrors(t *testing.T) {
	c := counting{err: errors.New("away")}
	a := &lookupTransport{next: &c, seen: map[string]cachedResponse{}}
	if _, err := ask(t, a, "/api/v1", ""); !errors.Is(err, c.err) {
		t.Errorf("got %v", err)
	}
	c.err = nil
	if got, err := ask(t, a, "/api/v1", ""); err != nil || got != "/api/v1, request 2" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Helm treats each 404 as an object that does not exist. A chart that keeps a generated password
// would generate another one.
func TestLookup_FailsIfPathIsNotServed(t *testing.T) {
	answer := reply{http.StatusNotFound, "404 page not found"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1" {
			_, _ = io.WriteString(w, `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "secrets", "namespaced": true, "kind": "Secret"}]}`)
			return
		}
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	}))
	t.Cleanup(server.Close)
	lookup := (&run{
		config: &engine.Configuration{RESTClientGetter: lookupGetter{ctx: t.Context(), config: &rest.Config{Host: server.URL}, namespace: "apps"}},
		kube:   &kubeClient{readings: newLookupRecord("cr-uid", nil, types.NamespacedName{})},
	}).lookup()
	for _, name := range []string{"a", ""} {
		if found, err := lookup("v1", "Secret", "apps", name); !apply.Retryable(err) {
			t.Errorf("name %q: found %v, error %v", name, found, err)
		}
	}
	answer = none
	if found, err := lookup("v1", "Secret", "apps", "a"); err != nil || len(found) > 0 {
		t.Errorf("an object that does not exist: found %v, error %v", found, err)
	}
}

func TestLookupGetter_RejectsOtherClients(t *testing.T) {
	if _, err := (lookupGetter{}).ToDiscoveryClient(); !errors.Is(err, errNotUsed) {
		t.Errorf("discovery: %v", err)
	}
	if _, err := (lookupGetter{}).ToRESTMapper(); !errors.Is(err, errNotUsed) {
		t.Errorf("mapper: %v", err)
	}
}
