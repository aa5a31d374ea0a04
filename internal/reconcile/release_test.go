package reconcile

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/release"
)

// TestOwnRecord tests which records with its UID belong to a custom resource.
func TestOwnRecord(t *testing.T) {
	in := func(namespace string, revision int) release.Record {
		return release.Record{Namespace: namespace, Revision: revision}
	}
	for name, test := range map[string]struct {
		owned            []release.Record
		wanted, reported string
		want             release.Record
	}{
		"none":                           {nil, "shop", "", release.Record{}},
		"own record":                     {[]release.Record{in("shop", 2), in("shop", 1)}, "shop", "shop", in("shop", 2)},
		"not reported by the status yet": {[]release.Record{in("shop", 1)}, "shop", "", in("shop", 1)},
		"a newer copy":                   {[]release.Record{in("evil", 9), in("shop", 1)}, "shop", "shop", in("shop", 1)},
		"only a copy":                    {[]release.Record{in("evil", 9)}, "shop", "", release.Record{}},
		"a copy, unknown namespace":      {[]release.Record{in("evil", 9)}, "", "", release.Record{}},
		"in the previous namespace of the watches entry": {[]release.Record{in("old", 1)}, "new", "old", in("old", 1)},
		"a copy in the requested namespace":              {[]release.Record{in("new", 9), in("old", 1)}, "new", "old", in("old", 1)},
		"after an uninstall in another namespace":        {[]release.Record{in("new", 1)}, "new", "old", in("new", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &unstructured.Unstructured{Object: map[string]any{}}
			if test.reported != "" {
				cr.Object["status"] = map[string]any{"release": map[string]any{"namespace": test.reported}}
			}
			for _, packed := range []bool{false, true} {
				if packed {
					text, err := json.Marshal(cr.Object["status"])
					if err != nil {
						t.Fatal(err)
					}
					cr.Object["status"] = string(text)
				}
				var got release.Record
				if found := ownRecord(cr, test.owned, test.wanted); found != nil {
					got = *found
				}
				if got.Namespace != test.want.Namespace || got.Revision != test.want.Revision {
					t.Errorf("%s %d, want %s %d", got.Namespace, got.Revision, test.want.Namespace, test.want.Revision)
				}
			}
		})
	}
}
