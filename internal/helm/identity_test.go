package helm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
)

// TestIdentity checks which user the API server sees.
func TestIdentity(t *testing.T) {
	var users, groups []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		users = append(users, r.Header.Get("Impersonate-User"))
		groups = append(groups, r.Header.Values("Impersonate-Group")...)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"apps"}}`))
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	own, err := newIdentity(config, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{own: own, identities: lru.New(2)}
	as := func(namespace, account string) identity {
		t.Helper()
		got, err := c.as(namespace, account)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	ask := func(who identity) {
		t.Helper()
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		if _, err := who.objects.Metadata.Resource(configMaps).Namespace("apps").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := who.objects.Dynamic.Resource(configMaps).Namespace("apps").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := who.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	const deployer = "system:serviceaccount:apps:deployer"
	ask(as("apps", "deployer"))
	if len(groups) > 0 {
		t.Errorf("groups %q are sent, which needs another permission", groups)
	}
	ask(as("other", "deployer"))
	ask(as("apps", "reader"))
	ask(as("apps", ""))
	var seen []string
	for _, user := range []string{deployer, "system:serviceaccount:other:deployer", "system:serviceaccount:apps:reader", ""} {
		// One request for metadata, one for whole objects, and one with Helm's client.
		seen = append(seen, user, user, user)
	}
	if diff := cmp.Diff(seen, users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	if config.Impersonate.UserName != "" {
		t.Error("the operator's own configuration was changed")
	}
	if got := as("apps", "deployer").config.Impersonate.UserName; got != deployer {
		t.Errorf("lookups are made as %q", got)
	}
}

// One client is created for each account, also if many actions start at the same time.
func TestIdentity_Cached(t *testing.T) {
	c := &Client{own: identity{config: &rest.Config{Host: "https://example.com"}}, identities: lru.New(2)}
	made := make([]identity, 16)
	var wait sync.WaitGroup
	for i := range made {
		wait.Go(func() { made[i], _ = c.as("apps", "deployer") })
	}
	wait.Wait()
	for _, one := range made {
		if one.http == nil || one.http != made[0].http || one.config != made[0].config {
			t.Fatal("one account has more than one client")
		}
	}
	if other, err := c.as("other", "deployer"); err != nil || other.http == made[0].http || other.config == made[0].config {
		t.Errorf("two accounts share a client: %v", err)
	}
	for i := range 9 {
		if _, err := c.as("other", fmt.Sprint("deployer-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if kept := c.identities.Len(); kept != 2 {
		t.Errorf("%d identities are cached", kept)
	}
}
