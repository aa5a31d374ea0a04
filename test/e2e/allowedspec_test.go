package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestLargestAllowedSpecs_DoNotAffectOthers creates custom resources with as
// many values as the operator accepts, in the shape that takes the most memory.
func TestLargestAllowedSpecs_DoNotAffectOthers(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	open, plain := env.NewKind("Open"), env.NewKind("Plain")
	env.InstallCRD(open)
	env.InstallCRD(plain)
	operator := env.NewOperator(harness.Options{
		Watches:       env.Watches(harness.MakeEntry(open, harness.Chart("plain")), harness.MakeEntry(plain, harness.Chart("plain"))),
		AllNamespaces: true,
		Env:           []string{"GOMEMLIMIT=460MiB"},
	}).Start()
	nested := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	extra := "[" + strings.Repeat(nested+",", 1_999) + nested + "]"
	var large []*unstructured.Unstructured
	for i := range 8 {
		cr := harness.MakeCR(open, fmt.Sprintf("large-%d", i)).Set("extra", "EXTRA").Obj()
		env.CreateText(cr, strings.Replace(text(t, cr), `"EXTRA"`, extra, 1))
		large = append(large, cr)
	}
	start := time.Now()
	other := harness.MakeCR(plain, "other").Set("message", "small").Obj()
	env.Create(other)
	env.WaitRevision(other, 1)
	t.Logf("other resource ready after %s, peak %d MiB", time.Since(start), operator.HighWater()>>20)
	env.WaitRevision(large[7], 1)
	t.Logf("peak %d MiB", operator.HighWater()>>20)
	operator.Stop()
	operator.Start()
	env.Create(harness.MakeCR(plain, "restarted").Set("message", "small").Obj())
	env.WaitRevision(harness.MakeCR(plain, "restarted").Obj(), 1)
	t.Logf("peak %d MiB", operator.HighWater()>>20)
	if peak := operator.HighWater() >> 20; peak > maxPeak {
		t.Errorf("the operator's peak memory is %d MiB", peak)
	}
}
