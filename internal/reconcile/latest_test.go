package reconcile

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// held is a cache that holds everything in one version.
type held struct {
	client.Reader
	version string
}

func (h held) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetResourceVersion(h.version)
	return nil
}

// TestRememberedUntilTheCacheHoldsIt: the watch may tell of a write before the
// write has returned.
func TestRememberedUntilTheCacheHoldsIt(t *testing.T) {
	key := types.NamespacedName{Namespace: "apps", Name: "web"}
	for version, want := range map[string]int{"9": 0, "10": 0, "11": 1} {
		r := &Reconciler{Reader: held{version: "10"}}
		written := &unstructured.Unstructured{}
		written.SetResourceVersion(version)
		r.remember(t.Context(), key, written)
		if got := len(r.latest.objects); got != want {
			t.Errorf("version %s is held %d times, want %d", version, got, want)
		}
	}
}
