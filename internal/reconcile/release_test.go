package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/records"
)

// TestOfThis: which of the records with its UID are a resource's own.
func TestOfThis(t *testing.T) {
	in := func(namespace string, revision int) records.Record {
		return records.Record{Namespace: namespace, Revision: revision}
	}
	for name, test := range map[string]struct {
		owned            []records.Record
		wanted, reported string
		want             records.Record
	}{
		"none":                                 {nil, "shop", "", records.Record{}},
		"its own":                              {[]records.Record{in("shop", 2), in("shop", 1)}, "shop", "shop", in("shop", 2)},
		"before the status tells":              {[]records.Record{in("shop", 1)}, "shop", "", in("shop", 1)},
		"one that was copied, and is newer":    {[]records.Record{in("evil", 9), in("shop", 1)}, "shop", "shop", in("shop", 1)},
		"a copy alone":                         {[]records.Record{in("evil", 9)}, "shop", "", records.Record{}},
		"a copy, where it cannot be asked for": {[]records.Record{in("evil", 9)}, "", "", records.Record{}},
		"where the entry wanted it before":     {[]records.Record{in("old", 1)}, "new", "old", in("old", 1)},
		"a copy where it asks to go now":       {[]records.Record{in("new", 9), in("old", 1)}, "new", "old", in("old", 1)},
		"after an uninstall elsewhere":         {[]records.Record{in("new", 1)}, "new", "old", in("new", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &unstructured.Unstructured{Object: map[string]any{}}
			if test.reported != "" {
				cr.Object["status"] = map[string]any{"release": map[string]any{"namespace": test.reported}}
			}
			for _, packed := range []bool{false, true} {
				if packed {
					pack(t, cr)
				}
				var got records.Record
				if found := ofThis(cr, test.owned, test.wanted); found != nil {
					got = *found
				}
				if got.Namespace != test.want.Namespace || got.Revision != test.want.Revision {
					t.Errorf("%s %d, want %s %d", got.Namespace, got.Revision, test.want.Namespace, test.want.Revision)
				}
			}
		})
	}
}
