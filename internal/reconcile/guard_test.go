package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// An action that waits because of an object is retried when the object no longer makes it
// wait.
func TestGuardedChanged(t *testing.T) {
	key := apply.Key{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}
	for _, test := range []struct {
		name, reason string
		state        apply.State
		want         bool
	}{
		{"waits for an approval", api.ReasonApprovalRequired, apply.State{UID: "u"}, false},
		{"protected", api.ReasonObjectProtected, apply.State{UID: "u", Protected: true}, false},
		{"no longer protected", api.ReasonObjectProtected, apply.State{UID: "u"}, true},
		{"kept", api.ReasonObjectProtected, apply.State{UID: "u", Protected: true, Kept: true}, true},
		{"being deleted", api.ReasonApprovalRequired, apply.State{UID: "u", Deleting: true}, true},
		{"recreated", api.ReasonApprovalRequired, apply.State{UID: "other"}, true},
		{"deleted", api.ReasonApprovalRequired, apply.State{}, true},
	} {
		index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
		if test.state.UID != "" {
			test.state.Key, test.state.Owner, test.state.Managed = key, "cr", true
			index.Put(test.state)
		}
		r := &Reconciler{Shared: Shared{Inventory: inventory.Inventory{Index: index}}}
		f := &status.Failure{Reason: test.reason, Guarded: map[apply.Key]types.UID{key: "u"}}
		if got := r.guardedChanged(f); got != test.want {
			t.Errorf("%s: changed %v, want %v", test.name, got, test.want)
		}
	}
}
