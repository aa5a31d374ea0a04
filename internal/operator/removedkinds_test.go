package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/catalog"
)

// TestRankKinds: forged records in a few namespaces do not displace kinds of many, and kinds
// of the API server are never watched.
func TestRankKinds(t *testing.T) {
	found := map[string]sets.Set[string]{
		"Forged.a.example.com":                   sets.New("one"),
		"Secret":                                 sets.New("one", "two", "three"),
		"Deployment.apps":                        sets.New("one", "two", "three"),
		"ClusterRole.rbac.authorization.k8s.io":  sets.New("one", "two", "three"),
		"Web.shop.example.com":                   sets.New("one", "two"),
		"Claimed.shop.example.com":               sets.New("one", "two"),
		"Many.shop.example.com":                  sets.New("one", "two", "three"),
		"Experimental.networking.x-k8s.io":       sets.New("three"),
		".shop.example.com/../../api/v1/secrets": sets.New("one"),
	}
	got := rankKinds(found, func(gk schema.GroupKind) bool { return mayBeServed(gk) && gk.Kind != "Claimed" })
	var names []string
	for _, gk := range got {
		names = append(names, gk.Kind)
	}
	if diff := cmp.Diff([]string{"Many", "Web", "Experimental", "Forged"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRemovedKinds_Counted: only kinds that are known from records count.
func TestRemovedKinds_Counted(t *testing.T) {
	k := &KindManager{kinds: []*kindState{{removed: true}, {}, {removed: true, kind: leafOf(t, "1.0.0", "")}, {removed: true, kind: catalog.Kind{}}}}
	if got := k.removedKinds(); got != 2 {
		t.Errorf("%d kinds, want 2", got)
	}
}
