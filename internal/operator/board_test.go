package operator

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/metrics"
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

func lackOf(always bool, why string, r rbacv1.PolicyRule, namespaces ...string) lack {
	return lack{need: need{Rule: permissions.Rule{PolicyRule: r, Why: why}, always: always}, namespaces: namespaces}
}

// lines joins the lines of an answer.
func lines(of ...string) string { return strings.Join(of, "\n") + "\n" }

func TestReport(t *testing.T) {
	broken := catalog.Broken{Folder: "/charts/bad", Kind: groupKind("Bad"), Err: errors.New("/charts/bad/kind.yaml:3: unknown key\n/charts/bad: no chart")}
	for _, test := range []struct {
		name   string
		kinds  []catalog.Kind
		broken []catalog.Broken
		change func(*board)
		ready  bool
		want   string
	}{
		{
			"nothing has begun", []catalog.Kind{kindOf("A")}, nil, func(*board) {}, false,
			lines("not ready: the operator is starting", "A.shop.example.com: waiting for its CustomResourceDefinition",
				"  the API server does not serve shop.example.com/v1 yet: its CustomResourceDefinition is missing, or has no such version"),
		},
		{
			"a kind has gone", []catalog.Kind{kindOf("A"), kindOf("B")}, nil, func(b *board) {
				b.hold("")
				b.set(groupKind("A"), stateServing, "not in namespace x")
				b.set(groupKind("B"), stateStarting, "")
				for _, kind := range []string{"A", "B"} {
					b.change(groupKind(kind), func(r *row) { r.gone = "it is missing" })
				}
			}, true,
			lines("ready", "A.shop.example.com: waiting for its CustomResourceDefinition", "  it is missing",
				"B.shop.example.com: waiting for its CustomResourceDefinition", "  it is missing"),
		},
		{
			"a kind starts", []catalog.Kind{kindOf("A"), kindOf("B")}, nil, func(b *board) {
				b.hold("")
				b.set(groupKind("A"), stateServing, "")
				b.set(groupKind("B"), stateStarting, "")
			}, false,
			lines("not ready: 1 of 2 kinds are starting", "A.shop.example.com: serving", "B.shop.example.com: starting"),
		},
		{
			"all kinds run", []catalog.Kind{kindOf("A")}, nil, func(b *board) {
				b.hold("")
				b.set(groupKind("A"), stateServing, "")
			}, true,
			lines("ready", "A.shop.example.com: serving"),
		},
		{
			"one waits, which is no reason", []catalog.Kind{kindOf("A")}, nil, func(b *board) { b.hold("") }, true,
			lines("ready", "A.shop.example.com: waiting for its CustomResourceDefinition",
				"  the API server does not serve shop.example.com/v1 yet: its CustomResourceDefinition is missing, or has no such version"),
		},
		{
			"one may not be watched, one is broken", []catalog.Kind{kindOf("A"), kindOf("B")}, []catalog.Broken{broken, {Folder: "/charts/odd", Err: errors.New("odd")}}, func(b *board) {
				b.hold("")
				b.set(groupKind("A"), stateServing, "")
				b.set(groupKind("B"), stateForbidden, "")
				// That one of the same name is broken is no matter of the others.
				b.set(groupKind("Bad"), stateServing, "")
			}, true,
			lines("ready", "A.shop.example.com: serving", "B.shop.example.com: may not be watched, for lack of rights",
				"Bad.shop.example.com: broken, of /charts/bad", "  /charts/bad/kind.yaml:3: unknown key", "  /charts/bad: no chart",
				"/charts/odd: broken", "  odd"),
		},
		{
			"nothing can be served", []catalog.Kind{kindOf("A")}, []catalog.Broken{broken}, func(b *board) {
				b.hold("")
				b.set(groupKind("A"), stateForbidden, "")
			}, false,
			lines("not ready: no kind can be served", "A.shop.example.com: may not be watched, for lack of rights",
				"Bad.shop.example.com: broken, of /charts/bad", "  /charts/bad/kind.yaml:3: unknown key", "  /charts/bad: no chart"),
		},
		{
			"rights are missing", []catalog.Kind{kindOf("A"), kindOf("B")}, nil, func(b *board) {
				b.hold("")
				b.set(groupKind("A"), stateServing, "")
				b.set(groupKind("B"), stateServing, "")
				b.change(groupKind("A"), func(r *row) {
					r.crd = "its CRD is old"
					r.lacks = []lack{
						lackOf(false, "chart a: templates/job.yaml", rule("batch", "jobs", "create"), "one", "other"),
						lackOf(true, "chart a: templates/all.yaml", rule("apps", "deployments", "get", "list")),
					}
				})
				b.change(groupKind("B"), func(r *row) { r.unknown = "a webhook decides" })
			}, true,
			lines("ready", "A.shop.example.com: serving", "  its CRD is old",
				"  rights are missing: add to the rules of the operator's role",
				`  - {apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list"]} # chart a: templates/all.yaml`,
				"  rights are missing that only some values need",
				`  - {apiGroups: ["batch"], resources: ["jobs"], verbs: ["create"]} # in one, other; chart a: templates/job.yaml`,
				"B.shop.example.com: serving", "  whether rights are missing is not known: a webhook decides"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(test.kinds, test.broken)
			test.change(b)
			ready, text := b.report()
			if ready != test.ready {
				t.Errorf("ready: %v, want %v", ready, test.ready)
			}
			if diff := cmp.Diff(test.want, text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadiness: whatever the kinds are, the operator is ready if, and only if,
// none is starting and one is not out of reach.
func TestReadiness(t *testing.T) {
	states := []state{stateWaiting, stateStarting, stateServing, stateForbidden}
	rapid.Check(t, func(t *rapid.T) {
		b := newBoard([]catalog.Kind{kindOf("A"), kindOf("B"), kindOf("C")}, nil)
		b.hold("")
		starting, reachable := false, false
		for _, name := range []string{"A", "B", "C"} {
			s := rapid.SampledFrom(states).Draw(t, name)
			b.set(groupKind(name), s, "")
			starting = starting || s == stateStarting
			reachable = reachable || s == stateServing || s == stateWaiting
		}
		if ready, text := b.report(); ready != (!starting && reachable) {
			t.Errorf("ready: %v\n%s", ready, text)
		}
		b.hold("records")
		if ready, _ := b.report(); ready {
			t.Error("it is ready although nothing can be served")
		}
	})
}

func TestBoardCounts(t *testing.T) {
	b := newBoard([]catalog.Kind{kindOf("A")}, []catalog.Broken{{Folder: "/charts/a", Kind: groupKind("A"), Err: errors.New("x")}, {Folder: "/charts/b", Err: errors.New("x")}})
	b.set(groupKind("A"), stateServing, "")
	b.change(groupKind("A"), func(r *row) { r.lacks = make([]lack, 2) })
	want := []metrics.Kind{
		{Kind: "A.shop.example.com", State: "Serving", RulesMissing: 2},
		{Kind: "A.shop.example.com", Folder: "/charts/a", State: "Broken"},
		{Folder: "/charts/b", State: "Broken"},
	}
	if diff := cmp.Diff(want, b.metrics()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
