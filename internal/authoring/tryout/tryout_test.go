package tryout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

var errLate = errors.New("not ready within 1m0s")

func TestAwaitReady(t *testing.T) {
	condition := func(status, message string) map[string]any {
		return map[string]any{"type": "Ready", "status": status, "reason": "Reason", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	for name, test := range map[string]struct {
		observed   int64
		conditions []any
		message    string // of the error; empty for ready
	}{
		"ready":              {2, []any{condition("True", "deployed")}, ""},
		"no status":          {2, nil, "not ready within 1m0s: no status"},
		"not ready":          {2, []any{condition("False", "Deployment/web: no image")}, "not ready within 1m0s: Deployment/web: no image"},
		"another generation": {1, []any{condition("True", "deployed")}, "not ready within 1m0s: deployed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cr := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": group + "/" + version, "kind": "Web",
					"metadata": map[string]any{"name": "web-sample", "namespace": "default", "generation": int64(2)},
					"status":   map[string]any{"observedGeneration": test.observed, "conditions": test.conditions},
				}}
				if test.conditions == nil {
					delete(cr.Object, "status")
				}
				resource := schema.GroupVersionResource{Group: group, Version: version, Resource: "webs"}
				client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "WebList"}, cr)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errLate)
				defer cancel()
				err := awaitReady(ctx, client.Resource(resource).Namespace("default"), "web-sample")
				if test.message == "" && err != nil || test.message != "" && (!errors.Is(err, errLate) || err.Error() != test.message) {
					t.Errorf("error %v, want %q", err, test.message)
				}
			})
		})
	}
}

func TestWithoutComments(t *testing.T) {
	got := withoutComments([]byte("kind: Web\nspec:\n  replicas: 1\n\n  # image: web # 1\n  color: \"#fff\"\n"))
	if want := "kind: Web\nspec:\n  replicas: 1\n  color: \"#fff\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFindLocalCluster_NamesTheWayOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := findLocalCluster(t.TempDir())
	if !errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), "--context") {
		t.Errorf("error %v", err)
	}
}
