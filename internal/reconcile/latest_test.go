package reconcile

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// held is a cache that returns objects in one version, or NotFound without a version.
type held struct {
	client.Reader
	version string
}

func (h held) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if h.version == "" {
		return apierrors.NewNotFound(schema.GroupResource{}, "web")
	}
	object.SetResourceVersion(h.version)
	return nil
}

// TestRemember_UntilTheCacheHasTheWrite: the watch event may arrive before the write
// returns.
func TestRemember_UntilTheCacheHasTheWrite(t *testing.T) {
	key := types.NamespacedName{Namespace: "apps", Name: "web"}
	for _, test := range []struct {
		cached, written string
		want            int
	}{
		{"10", "9", 0},
		{"10", "10", 0},
		{"10", "11", 1},
		// The removal of the finalizer has deleted the custom resource.
		{"", "11", 0},
	} {
		r := &Reconciler{Reader: held{version: test.cached}}
		written := &unstructured.Unstructured{}
		written.SetResourceVersion(test.written)
		r.remember(t.Context(), key, written)
		if got := len(r.latest.entries); got != test.want {
			t.Errorf("version %s is remembered %d times while the cache has %q, want %d", test.written, got, test.cached, test.want)
		}
	}
}
