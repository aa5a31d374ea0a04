package operator

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/operator/kindset"
)

// A kind whose chart is not available yet does not count as removed.
func TestLiveKinds_ClaimedUntilServedOrRemoved(t *testing.T) {
	kind := kindOf(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"})
	gk := kind.GVK().GroupKind()
	for name, test := range map[string]struct {
		change  func(liveKinds)
		claimed bool
	}{
		"claimed":         {func(liveKinds) {}, true},
		"served":          {func(l liveKinds) { l.Put("web", kind) }, false},
		"removed":         {func(l liveKinds) { l.Remove("web") }, false},
		"another removed": {func(l liveKinds) { l.Remove("other") }, true},
	} {
		l := liveKinds{set: kindset.New(nil)}
		l.Claim("web", gk)
		test.change(l)
		if got := l.set.Claimed(gk); got != test.claimed {
			t.Errorf("%s: claimed %v, want %v", name, got, test.claimed)
		}
	}
}
