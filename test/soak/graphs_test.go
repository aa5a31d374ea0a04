package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

const (
	// atOnce is the number of graphs that an operator serves at the same time.
	atOnce = 8
	// maxNodes is the maximum number of custom resources of a graph in a long run.
	maxNodes = 30
	// graphEvents is the number of events in a graph.
	graphEvents = 12
)

// TestGraphs orders the custom resources of random graphs by their dependencies, while
// users edit, break, delete and create them again, the charts change, and the operator is
// killed. CHARTWRIGHT_SOAK_GRAPHS is the number of graphs.
func TestGraphs(t *testing.T) {
	count, nodes := 2, 10
	if text := os.Getenv("CHARTWRIGHT_SOAK_GRAPHS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("CHARTWRIGHT_SOAK_GRAPHS: %v", err)
		}
		nodes = maxNodes
	}
	seed := readSettings(t).seeds[0]
	for first := 0; first < count; first += atOnce {
		t.Run(fmt.Sprintf("seed-%d-from-%d", seed, first), func(t *testing.T) {
			runGraphs(t, rand.New(rand.NewPCG(seed, uint64(first))), min(atOnce, count-first), nodes)
		})
	}
}

// graphs are the graphs of an operator.
type graphs struct {
	*harness.Env
	t        *testing.T
	rng      *rand.Rand
	kinds    []harness.Kind
	account  harness.Account
	proxy    *harness.Proxy
	operator *harness.Operator
	// version of the charts.
	version int
	graphs  []*graph
	order   *order
}

// graph is a namespace with custom resources that depend on each other.
type graph struct {
	*harness.Env
	nodes []*node
}

// node is a custom resource of a graph.
type node struct {
	kind harness.Kind
	name string
	// needs are the custom resources that it depends on.
	needs []*node
	// spec is its spec, and broken reports that its pods never start. edits counts the specs.
	edits  int
	broken bool
	alive  bool
}

func (n *node) object() *unstructured.Unstructured {
	outcome := ""
	if n.broken {
		outcome = "image-pull"
	}
	cr := harness.MakeCR(n.kind, n.name).Set("outcome", outcome).Set("account", "").Set("edit", strconv.Itoa(n.edits)).Obj()
	items := make([]string, len(n.needs))
	for i, need := range n.needs {
		items[i] = need.kind.Kind + "." + need.kind.Group + "/" + need.name
	}
	if len(items) > 0 {
		cr.SetAnnotations(map[string]string{api.AnnotationDependsOn: strings.Join(items, ",")})
	}
	return cr
}

func runGraphs(t *testing.T, rng *rand.Rand, count, nodes int) {
	t.Helper()
	env := harness.New(t)
	g := &graphs{Env: env, t: t, rng: rng, version: 1, account: env.NewAccount(), proxy: env.NewProxy()}
	for _, name := range []string{"Alpha", "Beta", "Gamma"} {
		kind := env.NewKind(name)
		env.InstallCRD(kind)
		g.kinds = append(g.kinds, kind)
	}
	g.order = watchOrder(g)
	g.swap()
	for i := range count {
		g.graphs = append(g.graphs, g.newGraph(env.In(env.NewNamespace("graph-"+strconv.Itoa(i))), 2+rng.IntN(nodes-1)))
	}
	for range graphEvents {
		written := g.order.written()
		for _, graph := range g.graphs {
			g.event(graph)
		}
		if g.operator.Running() && rng.IntN(3) == 0 {
			g.operator.KillAtWrite(1+rng.IntN(20), harness.AfterWrite)
		}
		if rng.IntN(6) == 0 {
			g.swap()
		}
		g.soon(func() bool { return g.order.written() >= written+2*len(g.graphs) })
	}
	g.converge()
	g.order.check(t, "the changes")
	g.remove()
	g.order.check(t, "the deletions")
}

// swap starts the operator, in place of the running one, with the next version of the
// charts.
func (g *graphs) swap() {
	g.t.Helper()
	if g.operator != nil && g.operator.Running() {
		// A stop could meet a kill.
		g.operator.Kill()
	}
	g.version++
	var kinds []any
	for _, kind := range g.kinds {
		kinds = append(kinds, map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind})
	}
	entries := make([]harness.Entry, len(g.kinds))
	for i, kind := range g.kinds {
		entries[i] = harness.MakeEntry(kind, g.chart(g.version)).Timeout(actionTimeout).
			With("allow", map[string]any{"dependsOn": map[string]any{"annotation": kinds}}).
			With("rollout", map[string]any{"maxConcurrent": 100})
	}
	g.operator = g.NewOperator(harness.Options{Watches: g.Watches(entries...), Proxy: g.proxy, AllNamespaces: true, Account: g.account}).Start()
}

// soon waits until the events have had effects, at most for the duration of a round.
func (g *graphs) soon(condition func() bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), long)
	defer cancel()
	// The operator may have less to do than expected.
	_ = wait.PollUntilContextCancel(ctx, long/50, true, func(context.Context) (bool, error) {
		g.keep()
		return condition(), nil
	})
}

// keep starts an operator that was killed.
func (g *graphs) keep() {
	g.t.Helper()
	if !g.operator.Running() {
		g.operator.Launch()
	}
}

// newGraph creates custom resources in a random order. Most depend on earlier ones, and
// few close a cycle.
func (g *graphs) newGraph(env *harness.Env, size int) *graph {
	created := &graph{Env: env}
	for i := range size {
		n := &node{kind: g.kinds[g.rng.IntN(len(g.kinds))], name: "n" + strconv.Itoa(i), alive: true}
		for range g.rng.IntN(4) {
			if i > 0 {
				if need := created.nodes[g.rng.IntN(i)]; !slices.Contains(n.needs, need) {
					n.needs = append(n.needs, need)
				}
			}
		}
		created.nodes = append(created.nodes, n)
	}
	if g.rng.IntN(4) == 0 {
		first := created.nodes[0]
		first.needs = append(first.needs, created.nodes[g.rng.IntN(size)])
	}
	for _, i := range g.rng.Perm(size) {
		created.Create(created.nodes[i].object())
	}
	return created
}

// event changes one custom resource of a graph, and sometimes one that it depends on
// before it.
func (g *graphs) event(in *graph) {
	g.t.Helper()
	n := in.nodes[g.rng.IntN(len(in.nodes))]
	switch what := g.rng.IntN(10); {
	case !n.alive:
		g.recreate(in, n)
	case what == 0:
		// Without waiting: the deletion waits for dependents.
		in.Delete(n.object())
		n.alive = false
	case what < 3:
		n.broken = !n.broken
		g.edit(in, n)
	default:
		for _, need := range n.needs {
			if need.alive && g.rng.IntN(2) == 0 {
				g.edit(in, need)
			}
		}
		g.edit(in, n)
	}
}

func (g *graphs) edit(in *graph, n *node) {
	g.t.Helper()
	n.edits++
	in.SetSpec(n.object())
}

// recreate creates a custom resource again, if its deletion has ended.
func (g *graphs) recreate(in *graph, n *node) {
	g.t.Helper()
	_, err := in.At(n.object()).Create(g.t.Context(), n.object(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		g.t.Fatal(err)
	}
	n.alive = err == nil
}

// converge ends cycles, repairs everything and expects that all custom resources become
// Ready.
func (g *graphs) converge() {
	g.t.Helper()
	g.keep()
	for _, in := range g.graphs {
		// A deletion that waits for live dependents ends when they go.
		for _, n := range in.nodes {
			if !n.alive {
				g.ignoreDependents(in, n)
				in.WaitGone(n.object())
			}
		}
		for i, n := range in.nodes {
			n.needs = slices.DeleteFunc(n.needs, func(need *node) bool { return slices.Index(in.nodes, need) >= i })
			n.broken = false
			if !n.alive {
				g.recreate(in, n)
			} else {
				in.Annotate(n.object(), api.AnnotationDependsOn, n.object().GetAnnotations()[api.AnnotationDependsOn])
				g.edit(in, n)
			}
		}
	}
	for _, in := range g.graphs {
		for _, n := range in.nodes {
			in.Wait(fmt.Sprintf("%s %s to be Ready", in.Namespace, n.name), func(ctx context.Context) error {
				g.keep()
				live, err := in.At(n.object()).Get(ctx, n.name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				if state := stateOf(live); !state.ready {
					return fmt.Errorf("its status is %v", live.Object["status"])
				}
				return nil
			})
		}
	}
}

// ignoreDependents ends the wait of a deletion, unless it is over.
func (g *graphs) ignoreDependents(in *graph, n *node) {
	g.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationDeletionOrder, api.DeletionOrderIgnore)
	_, err := in.At(n.object()).Patch(g.t.Context(), n.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		g.t.Fatal(err)
	}
}

// chart returns the folder of a version of the chart, whose pods differ from those of other
// versions.
func (g *graphs) chart(version int) string {
	g.t.Helper()
	dir := filepath.Join(g.t.TempDir(), "workloads")
	if err := os.CopyFS(dir, os.DirFS(harness.Chart("workloads"))); err != nil {
		g.t.Fatal(err)
	}
	for file, change := range map[string][2]string{
		"Chart.yaml":         {"version: 0.1.0", fmt.Sprintf("version: 0.%d.0", version)},
		"templates/all.yaml": {"annotations:\n        test", fmt.Sprintf("annotations:\n        example.com/chart: %q\n        example.com/edit: {{ .Values.edit | quote }}\n        test", strconv.Itoa(version))},
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			g.t.Fatal(err)
		}
		changed := strings.Replace(string(data), change[0], change[1], 1)
		if changed == string(data) {
			g.t.Fatalf("%s does not contain %q", file, change[0])
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(changed), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
	return dir
}

// remove deletes all custom resources in a random order and waits until they are gone.
func (g *graphs) remove() {
	g.t.Helper()
	for _, in := range g.graphs {
		for _, i := range g.rng.Perm(len(in.nodes)) {
			in.Delete(in.nodes[i].object())
		}
	}
	for _, in := range g.graphs {
		for _, n := range in.nodes {
			in.WaitGone(n.object())
		}
	}
}
