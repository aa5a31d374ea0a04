package helm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

func TestPlaceOf(t *testing.T) {
	for _, test := range []struct {
		path string
		want place
		ok   bool
	}{
		{"/api/v1/namespaces/apps/secrets/a", place{"", "secrets", "apps", "a"}, true},
		{"/api/v1/namespaces/apps/secrets", place{"", "secrets", "apps", ""}, true},
		{"/apis/apps/v1/namespaces/apps/deployments/a", place{"apps", "deployments", "apps", "a"}, true},
		{"/apis/apps/v1beta1/namespaces/apps/deployments/a", place{"apps", "deployments", "apps", "a"}, true},
		{"/apis/apps/v1/deployments", place{"apps", "deployments", "", ""}, true},
		{"/api/v1/namespaces/apps", place{"", "namespaces", "", "apps"}, true},
		{"/api/v1/namespaces", place{"", "namespaces", "", ""}, true},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node", place{"rbac.authorization.k8s.io", "clusterroles", "", "system:node"}, true},
		{"/api/v1/namespaces/apps/pods/a/log", place{"", "pods", "apps", "a/log"}, true},
		{"/api/v1", place{}, false},
		{"/apis/apps/v1", place{}, false},
		{"/", place{}, false},
		{"/metrics/a/b/c", place{}, false},
		{"/api/v1/namespaces/apps/../other/secrets/a", place{}, false},
		{"/api/..", place{}, false},
		{"/api/v1/namespaces//secrets/a", place{}, false},
	} {
		got, ok := placeOf(test.path)
		if got != test.want || ok != test.ok {
			t.Errorf("%s: %+v, %t, want %+v, %t", test.path, got, ok, test.want, test.ok)
		}
	}
}

func TestPlaces(t *testing.T) {
	b := newTestBuilder(t)
	rls := &engine.Release{
		Manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b, namespace: other}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: c}\n",
		Hooks:    []*engine.Hook{{Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n"}},
	}
	got, err := b.places(rls)
	if err != nil {
		t.Fatal(err)
	}
	want := map[place]bool{
		{"", "secrets", "apps", "a"}:          true,
		{"apps", "deployments", "other", "b"}: true,
		{"", "namespaces", "", "c"}:           true,
		{"", "configmaps", "apps", "d"}:       true,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(place{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rls.Hooks[0].Manifest = "apiVersion: v1\nkind: Unheard\nmetadata: {name: d}\n"
	if _, err := b.places(rls); err == nil {
		t.Error("an unknown kind has a place")
	}
}
