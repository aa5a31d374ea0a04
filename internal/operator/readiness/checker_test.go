package readiness

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/catalog"
	chartpermissions "github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/watches"
)

func kindOf(name string) catalog.Kind {
	return catalog.Kind{Watch: watches.Watch{Group: "shop.example.com", Version: "v1", Kind: name}}
}

func groupKind(name string) schema.GroupKind {
	return schema.GroupKind{Group: "shop.example.com", Kind: name}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func missingOf(always bool, why string, r rbacv1.PolicyRule, namespaces ...string) permissions.Rule {
	return permissions.Rule{Rule: chartpermissions.Rule{PolicyRule: r, Why: why}, Always: always, Namespaces: namespaces}
}

func noDetails() []string { return nil }

// lines joins the lines of an answer.
func lines(of ...string) string { return strings.Join(of, "\n") + "\n" }

func TestReport(t *testing.T) {
	broken := catalog.Broken{Folder: "/charts/bad", Kind: groupKind("Bad"), Err: errors.New("/charts/bad/kind.yaml:3: unknown key\n/charts/bad: no chart")}
	for _, test := range []struct {
		name   string
		kinds  []catalog.Kind
		broken []catalog.Broken
		change func(*Checker)
		ready  bool
		want   string
	}{
		{
			"at start", []catalog.Kind{kindOf("A")}, nil, func(*Checker) {}, false,
			lines("not ready: the operator is starting", "A.shop.example.com: Waiting for its CustomResourceDefinition",
				"  the API server does not serve shop.example.com/v1 yet: its CustomResourceDefinition is missing or lacks the version"),
		},
		{
			"a CRD was deleted", []catalog.Kind{kindOf("A"), kindOf("B")}, nil, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Serving, "not in namespace x")
				b.SetState(groupKind("B"), Starting, "")
				for _, kind := range []string{"A", "B"} {
					b.Update(groupKind(kind), func(r *Kind) { r.Unserved = "it is missing" })
				}
			}, true,
			lines("ready", "A.shop.example.com: Waiting for its CustomResourceDefinition", "  it is missing",
				"B.shop.example.com: Waiting for its CustomResourceDefinition", "  it is missing"),
		},
		{
			"a kind is starting", []catalog.Kind{kindOf("A"), kindOf("B")}, nil, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Serving, "")
				b.SetState(groupKind("B"), Starting, "")
			}, false,
			lines("not ready: 1 of 2 kinds are starting", "A.shop.example.com: Serving", "B.shop.example.com: Starting"),
		},
		{
			"all kinds are served", []catalog.Kind{kindOf("A")}, nil, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Serving, "")
			}, true,
			lines("ready", "A.shop.example.com: Serving"),
		},
		{
			"a kind is waiting", []catalog.Kind{kindOf("A")}, nil, func(b *Checker) { b.SetNotReady("") }, true,
			lines("ready", "A.shop.example.com: Waiting for its CustomResourceDefinition",
				"  the API server does not serve shop.example.com/v1 yet: its CustomResourceDefinition is missing or lacks the version"),
		},
		{
			"a kind is forbidden, two folders are broken", []catalog.Kind{kindOf("A"), kindOf("B")}, []catalog.Broken{broken, {Folder: "/charts/odd", Err: errors.New("odd")}}, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Serving, "")
				b.SetState(groupKind("B"), Forbidden, "")
				// The state of a broken kind does not change.
				b.SetState(groupKind("Bad"), Serving, "")
			}, true,
			lines("ready", "A.shop.example.com: Serving", "B.shop.example.com: Forbidden; the operator lacks the permission to watch",
				"Bad.shop.example.com: Broken, of /charts/bad", "  /charts/bad/kind.yaml:3: unknown key", "  /charts/bad: no chart",
				"/charts/odd: Broken", "  odd"),
		},
		{
			"no kind can be served", []catalog.Kind{kindOf("A")}, []catalog.Broken{broken}, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Forbidden, "")
			}, false,
			lines("not ready: no kind can be served", "A.shop.example.com: Forbidden; the operator lacks the permission to watch",
				"Bad.shop.example.com: Broken, of /charts/bad", "  /charts/bad/kind.yaml:3: unknown key", "  /charts/bad: no chart"),
		},
		{
			"an entry of the watches file is broken", []catalog.Kind{kindOf("A")}, catalog.BrokenEntries([]catalog.Kind{{Watch: watches.Watch{
				Group: "shop.example.com", Kind: "Bad", File: "watches.yaml", Line: 3, Problems: watches.LineErrors{{File: "watches.yaml", Line: 4, Message: "unknown key"}},
			}}}), func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Serving, "")
			}, false,
			lines("not ready: the watches file has entries that cannot be served. All other kinds are served", "A.shop.example.com: Serving",
				"Bad.shop.example.com: Broken, of watches.yaml:3", "  watches.yaml:4: unknown key"),
		},
		{
			"a kind is replaced, another removed, a third added", []catalog.Kind{kindOf("A"), kindOf("B")}, []catalog.Broken{broken}, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Serving, "")
				b.Update(groupKind("A"), func(r *Kind) { r.CRD = "its CRD is old" })
				b.Add(kindOf("A"))
				b.SetState(groupKind("A"), Starting, "")
				b.SetState(groupKind("B"), Removed, "1 custom resource left")
				b.Add(kindOf("C"))
				b.SetState(groupKind("C"), Serving, "")
				b.SetBroken(nil)
			}, true,
			lines("ready", "A.shop.example.com: Starting", "B.shop.example.com: Removed; only deletions are carried out",
				"  1 custom resource left", "C.shop.example.com: Serving"),
		},
		{
			"a removed kind is forbidden", []catalog.Kind{kindOf("A")}, nil, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Removed, "")
				b.SetState(groupKind("A"), Forbidden, "")
			}, true,
			lines("ready", "A.shop.example.com: Forbidden; the operator lacks the permission to watch"),
		},
		{
			"a removed kind is defined again and forbidden", []catalog.Kind{kindOf("A")}, nil, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Removed, "")
				b.Add(kindOf("A"))
				b.SetState(groupKind("A"), Forbidden, "")
			}, false,
			lines("not ready: no kind can be served", "A.shop.example.com: Forbidden; the operator lacks the permission to watch"),
		},
		{
			"no kind is left", []catalog.Kind{kindOf("A")}, nil, func(b *Checker) {
				b.SetNotReady("")
				b.Remove(groupKind("A"))
			}, true, lines("ready"),
		},
		{
			"rules are missing", []catalog.Kind{kindOf("A"), kindOf("B")}, nil, func(b *Checker) {
				b.SetNotReady("")
				b.SetState(groupKind("A"), Serving, "")
				b.SetState(groupKind("B"), Serving, "")
				b.Update(groupKind("A"), func(r *Kind) {
					r.CRD = "its CRD is old"
					r.Missing = []permissions.Rule{
						missingOf(false, "chart a: templates/job.yaml", rule("batch", "jobs", "create"), "one", "other"),
						missingOf(true, "chart a: templates/all.yaml", rule("apps", "deployments", "get", "list")),
					}
				})
				b.Update(groupKind("B"), func(r *Kind) { r.Unknown = "a webhook decides" })
			}, true,
			lines("ready", "A.shop.example.com: Serving", "  its CRD is old",
				"  rules missing from the operator's role",
				`  - {apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list"]} # chart a: templates/all.yaml`,
				"  rules missing from the operator's role that only some values need",
				`  - {apiGroups: ["batch"], resources: ["jobs"], verbs: ["create"]} # in one, other; chart a: templates/job.yaml`,
				"B.shop.example.com: Serving", "  missing rules unknown: a webhook decides"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := NewChecker(test.kinds, test.broken, noDetails)
			test.change(b)
			ready, text := b.Report()
			if ready != test.ready {
				t.Errorf("ready: %v, want %v", ready, test.ready)
			}
			if diff := cmp.Diff(test.want, text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReport_ReadyByStates checks random states: the operator is ready if and only if no kind
// is starting and at least one is served or waiting.
func TestReport_ReadyByStates(t *testing.T) {
	states := []State{Waiting, Starting, Serving, Forbidden}
	rapid.Check(t, func(t *rapid.T) {
		b := NewChecker([]catalog.Kind{kindOf("A"), kindOf("B"), kindOf("C")}, nil, noDetails)
		b.SetNotReady("")
		starting, reachable := false, false
		for _, name := range []string{"A", "B", "C"} {
			s := rapid.SampledFrom(states).Draw(t, name)
			b.SetState(groupKind(name), s, "")
			starting = starting || s == Starting
			reachable = reachable || s == Serving || s == Waiting
		}
		if ready, text := b.Report(); ready != (!starting && reachable) {
			t.Errorf("ready: %v\n%s", ready, text)
		}
		b.SetNotReady("records")
		if ready, _ := b.Report(); ready {
			t.Error("ready although no kind can be served")
		}
	})
}

func TestChecker_Metrics(t *testing.T) {
	b := NewChecker([]catalog.Kind{kindOf("A")}, []catalog.Broken{{Folder: "/charts/a", Kind: groupKind("A"), Err: errors.New("x")}, {Folder: "/charts/b", Err: errors.New("x")}}, noDetails)
	b.SetState(groupKind("A"), Serving, "")
	b.Update(groupKind("A"), func(r *Kind) { r.Missing = make([]permissions.Rule, 2) })
	want := []metrics.Kind{
		{Kind: "A.shop.example.com", State: "Serving", RulesMissing: 2},
		{Kind: "A.shop.example.com", Folder: "/charts/a", State: "Broken"},
		{Folder: "/charts/b", State: "Broken"},
	}
	if diff := cmp.Diff(want, b.Metrics()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
