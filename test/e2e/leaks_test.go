package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestFailures_LeakNoResources: actions that fail for three reasons leak no memory,
// no goroutine and no connection.
func TestFailures_LeakNoResources(t *testing.T) {
	t.Parallel()
	const each = 10 // custom resources per cause
	total := float64(testenv.Attempts(500, 2000))
	env := harness.New(t)
	strict, pieces := env.NewKind("Strict"), env.NewKind("Pieces")
	env.InstallCRD(strict)
	env.InstallCRD(pieces)
	metrics := env.NewMetrics()
	env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(strict, harness.Chart("strict")), harness.MakeEntry(pieces, harness.Chart("pieces"))),
		Account: env.NewAccount(), Args: metrics.Args(),
	}).Start()
	var crs []*unstructured.Unstructured
	for i := range each {
		crs = append(
			crs,
			// The schema refuses the first; a template of the second fails; the
			// API server refuses the third after the record is stored.
			harness.MakeCR(strict, fmt.Sprintf("schema-%d", i)).Set("port", 70000).Obj(),
			harness.MakeCR(strict, fmt.Sprintf("template-%d", i)).Set("port", 80).Set("mode", "unheard-of").Obj(),
			harness.MakeCR(pieces, fmt.Sprintf("refused-%d", i)).Set("pieces", map[string]any{"Not_a_name": "x"}).Obj(),
		)
	}
	env.Create(crs...)
	failures := func() float64 {
		return metrics.Sum("chartwright_actions_total", map[string]string{"outcome": "failed"})
	}
	// A request for another attempt ignores the backoff.
	round := func(number int) {
		least := failures()
		for _, cr := range crs {
			_, err := env.At(cr).Patch(t.Context(), cr.GetName(), types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, api.AnnotationReconcile, number), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		env.Wait("every custom resource to have failed once more", func(context.Context) error {
			if got := failures() - least; got < float64(len(crs)) {
				return fmt.Errorf("%v of %d have failed", got, len(crs))
			}
			return nil
		})
	}
	measure := func() map[string]float64 {
		taken := map[string]float64{}
		for _, name := range []string{"go_goroutines", "go_memstats_heap_inuse_bytes", "process_open_fds"} {
			taken[name] = metrics.Sum(name, nil)
		}
		return taken
	}
	for number := range 4 {
		round(number)
	}
	before := measure()
	for number := 4; failures() < total; number++ {
		round(number)
	}
	after := measure()
	t.Logf("%v failures; before %v, after %v", failures(), before, after)
	// The tolerance is below a leak in one of 10 failures.
	for name, slack := range map[string]float64{"go_goroutines": 50, "go_memstats_heap_inuse_bytes": 24 << 20, "process_open_fds": 20} {
		if after[name] > before[name]+slack {
			t.Errorf("%s grew from %v to %v", name, before[name], after[name])
		}
	}
}
