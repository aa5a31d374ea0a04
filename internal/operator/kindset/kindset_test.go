package kindset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

func kindOf(name, file string) catalog.Kind {
	return catalog.Kind{Watch: watches.Watch{Group: "shop.example.com", Version: "v1", Kind: name, File: file, Line: 3}, Chart: &chart.Chart{Digest: "one"}}
}

func withPlural(kind catalog.Kind, plural string) catalog.Kind {
	kind.Plural = plural
	return kind
}

// owners returns the kinds that are served, each with the file that defines it.
func owners(s *Set) map[string]string {
	found := map[string]string{}
	for _, entry := range s.List() {
		found[entry.Kind.Kind] = entry.Kind.File
	}
	return found
}

func TestSet_OneOwnerPerKind(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*Set)
		want     map[string]string
		conflict string
	}{
		{
			"watches file before folder", func(s *Set) { s.Put(Folder, "web", kindOf("Entry", "web/kind.yaml")) },
			map[string]string{"Entry": "watches.yaml"},
			"Entry.shop.example.com is already served by watches.yaml:3: expected one chart per kind",
		},
		{
			"folder before ChartKind, in any order", func(s *Set) {
				s.Put(ChartKind, "1/web", kindOf("Web", "ChartKind web"))
				s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
			}, map[string]string{"Entry": "watches.yaml", "Web": "web/kind.yaml"}, "",
		},
		{
			"the first folder by name", func(s *Set) {
				s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
				s.Put(Folder, "also", kindOf("Web", "also/kind.yaml"))
			}, map[string]string{"Entry": "watches.yaml", "Web": "also/kind.yaml"},
			"Web.shop.example.com is already served by also/kind.yaml:3: expected one chart per kind",
		},
		{
			"the loser takes over", func(s *Set) {
				s.Put(Folder, "also", kindOf("Web", "also/kind.yaml"))
				s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
				s.Remove(Folder, "also")
			}, map[string]string{"Entry": "watches.yaml", "Web": "web/kind.yaml"}, "",
		},
		{
			"a loser does not take a plural", func(s *Set) {
				s.Put(Folder, "a", withPlural(kindOf("Entry", "a/kind.yaml"), "webs"))
				s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
			}, map[string]string{"Entry": "watches.yaml", "Web": "web/kind.yaml"}, "",
		},
		{
			"one plural per group", func(s *Set) {
				s.Put(Folder, "site", withPlural(kindOf("Site", "site/kind.yaml"), "webs"))
				s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
			}, map[string]string{"Entry": "watches.yaml", "Site": "site/kind.yaml"},
			"the plural webs of Web is also the plural of Site (site/kind.yaml:3): in a group, the API server serves only one kind with a name: set another plural",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New([]catalog.Kind{kindOf("Entry", "watches.yaml")})
			test.change(s)
			if diff := cmp.Diff(test.want, owners(s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := s.Conflict(Folder, "web"); got != test.conflict {
				t.Errorf("conflict: %q, want %q", got, test.conflict)
			}
		})
	}
}

func TestSet_SerialChangesWithKind(t *testing.T) {
	s := New(nil)
	serial := func() int64 { return s.List()[0].Serial }
	web := kindOf("Web", "web/kind.yaml")
	s.Put(Folder, "web", web)
	first := serial()
	s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
	if serial() != first {
		t.Error("an equal kind has another serial")
	}
	for what, change := range map[string]func(*catalog.Kind){
		"chart":     func(k *catalog.Kind) { k.Chart = &chart.Chart{Digest: "two"} },
		"entry":     func(k *catalog.Kind) { k.ShortNames = []string{"w"} },
		"overrides": func(k *catalog.Kind) { k.Overrides = map[string]any{"a": "b"} },
	} {
		changed := web
		change(&changed)
		before := serial()
		s.Put(Folder, "web", changed)
		if serial() == before {
			t.Errorf("the serial does not change with the %s", what)
		}
	}
}

func TestSet_SignalsEveryListener(t *testing.T) {
	s := New(nil)
	one, other := s.Changes(), s.Changes()
	s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
	s.Put(Folder, "shop", kindOf("Shop", "shop/kind.yaml"))
	var signals strings.Builder
	for range 2 {
		for name, listener := range map[string]<-chan struct{}{"a": one, "b": other} {
			select {
			case <-listener:
				signals.WriteString(name)
			default:
			}
		}
	}
	if got := signals.String(); len(got) != 2 || got[0] == got[1] {
		t.Errorf("signals: %s", got)
	}
	s.Put(Folder, "web", kindOf("Web", "web/kind.yaml"))
	s.Remove(Folder, "other")
	if len(one) > 0 {
		t.Error("a signal although nothing has changed")
	}
}

func TestSet_OwnerOfKindThatWasNotAdded(t *testing.T) {
	s := New([]catalog.Kind{withPlural(kindOf("Entry", "watches.yaml"), "webs")})
	s.Put(ChartKind, "a", kindOf("Shop", "ChartKind/a"))
	for _, test := range []struct {
		source Source
		kind   string
		want   string
	}{
		{ChartKind, "Entry", "Entry.shop.example.com is already served by watches.yaml:3: expected one chart per kind"},
		{ChartKind, "Web", "the plural webs of Web is also the plural of Entry (watches.yaml:3): in a group, the API server serves only one kind with a name: set another plural"},
		{ChartKind, "Shop", ""},
		{ChartKind, "Other", ""},
		{Folder, "Shop", ""},
	} {
		if got := s.Owner(test.source, kindOf(test.kind, "new")); got != test.want {
			t.Errorf("%s: %q, want %q", test.kind, got, test.want)
		}
	}
}

func TestSet_ClaimedUntilAddedOrRemoved(t *testing.T) {
	web, shop := kindOf("Web", "web").GVK().GroupKind(), kindOf("Shop", "shop").GVK().GroupKind()
	for _, test := range []struct {
		name      string
		change    func(*Set)
		web, shop bool
	}{
		{"no claim", func(*Set) {}, false, false},
		{"claim", func(s *Set) { s.Claim(Folder, "web", web) }, true, false},
		{"claim of an unknown kind", func(s *Set) { s.Claim(Folder, "web", schema.GroupKind{}) }, true, true},
		{"claim of another kind", func(s *Set) { s.Claim(Folder, "web", web); s.Claim(Folder, "web", shop) }, false, true},
		{"added", func(s *Set) { s.Claim(Folder, "web", web); s.Put(Folder, "web", kindOf("Web", "web")) }, false, false},
		{"added before", func(s *Set) { s.Put(Folder, "web", kindOf("Web", "web")); s.Claim(Folder, "web", shop) }, false, false},
		{"removed", func(s *Set) { s.Claim(Folder, "web", web); s.Remove(Folder, "web") }, false, false},
		{"another source removed", func(s *Set) { s.Claim(Folder, "web", web); s.Remove(ChartKind, "web") }, true, false},
	} {
		s := New(nil)
		test.change(s)
		if got := s.Claimed(web); got != test.web {
			t.Errorf("%s: Web claimed: %v", test.name, got)
		}
		if got := s.Claimed(shop); got != test.shop {
			t.Errorf("%s: Shop claimed: %v", test.name, got)
		}
	}
	s := New(nil)
	s.Claim(Folder, "web", web)
	changes := s.Changes()
	s.Claim(Folder, "web", web)
	if len(changes) > 0 {
		t.Error("a signal although nothing has changed")
	}
	s.Remove(Folder, "web")
	if len(changes) == 0 {
		t.Error("no signal for the end of a claim")
	}
}
