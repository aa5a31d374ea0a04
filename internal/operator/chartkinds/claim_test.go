package chartkinds

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/operator/chartcache"
)

// TestOpen_ClaimsKindWithoutChart: a kind whose chart is not in the cache after a restart was
// not removed.
func TestOpen_ClaimsKindWithoutChart(t *testing.T) {
	cache, err := chartcache.Open(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	kinds := &kindSet{}
	c := New(Config{Operator: chartkind.DefaultOperator, Kinds: kinds, Cache: cache, Logger: logr.Discard(), Now: time.Now})
	open := func(name string, change func(*unstructured.Unstructured)) {
		t.Helper()
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"names": map[string]any{"group": "shop.example.com", "version": "v1", "kind": "Web"}, "chart": map[string]any{"oci": "oci://a.test/web"},
		}}}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: chartkind.GVR.Group, Version: chartkind.GVR.Version, Kind: "ChartKind"})
		object.SetName(name)
		object.SetUID("uid")
		change(object)
		if _, _, err := c.open(object); err != nil {
			t.Fatal(err)
		}
	}
	open("web", func(*unstructured.Unstructured) {})
	open("of-another-operator", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "other", "spec", "operator")
	})
	open("orphaning", func(o *unstructured.Unstructured) {
		o.SetDeletionTimestamp(new(metav1.Now()))
	})
	want := map[string]schema.GroupKind{"web": {Group: "shop.example.com", Kind: "Web"}}
	if diff := cmp.Diff(want, kinds.claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// TestUnlistable: the operator starts without ChartKinds only if an administrator has to act.
func TestUnlistable(t *testing.T) {
	resource := schema.GroupResource{Group: chartkind.GVR.Group, Resource: chartkind.GVR.Resource}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{apierrors.NewForbidden(resource, "", errors.New("no rule")), true},
		{apierrors.NewNotFound(resource, ""), true},
		{apierrors.NewServiceUnavailable("starting"), false},
		{apierrors.NewTooManyRequests("later", 1), false},
		{errors.New("connection refused"), false},
	} {
		if got := unlistable(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
