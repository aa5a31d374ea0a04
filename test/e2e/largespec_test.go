package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// maxPeak is the maximum peak memory of an operator, in MiB. Its container is
// limited to 512 MiB.
const maxPeak = 400

// TestLargeSpecs_AreRefusedAndDoNotAffectOthers creates custom resources of the
// maximum size that the API server allows. The operator refuses them, serves
// others, also after a restart, and deletes them on request.
func TestLargeSpecs_AreRefusedAndDoNotAffectOthers(t *testing.T) {
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
	edited := harness.MakeCR(open, "edited").Set("message", "small").Obj()
	env.Create(edited)
	env.WaitRevision(edited, 1)

	var large []*unstructured.Unstructured
	create := func(count int, extra string) {
		t.Helper()
		for range count {
			cr := harness.MakeCR(open, fmt.Sprintf("large-%d", len(large))).Set("extra", "EXTRA").Obj()
			env.CreateText(cr, strings.Replace(text(t, cr), `"EXTRA"`, extra, 1))
			large = append(large, cr)
		}
	}
	small := func(name string) {
		t.Helper()
		start := time.Now()
		cr := harness.MakeCR(plain, name).Set("message", "small").Obj()
		env.Create(cr)
		env.WaitRevision(cr, 1)
		t.Logf("%s after %s, peak %d MiB", name, time.Since(start), operator.HighWater()>>20)
		if !operator.Running() {
			t.Fatalf("the operator exited before %s was installed", name)
		}
		if peak := operator.HighWater() >> 20; peak > maxPeak {
			t.Fatalf("the operator's peak memory is %d MiB when %s is installed", peak, name)
		}
	}
	create(4, emptyMaps(450_000))
	small("beside-four")
	// The API server needs seconds for each list of this size, and less time
	// for the same bytes as strings.
	create(8, strconv.Quote(strings.Repeat("x", 1_350_000)))
	small("beside-all")
	for _, cr := range []*unstructured.Unstructured{large[0], large[3], large[11]} {
		status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "InvalidValues")
		if message := condition(t, status, "Ready").Message; !strings.Contains(message, "the limits are 262144 bytes and 50000 values") {
			t.Fatalf("the message of Ready is %q", message)
		}
	}
	t.Logf("the operator's peak memory is %d MiB", operator.HighWater()>>20)

	operator.Stop()
	operator.Start()
	small("after-a-restart")

	// A release keeps running if its spec becomes too large.
	env.Patch(edited, `[{"op":"add","path":"/spec/extra","value":`+emptyMaps(60_000)+`}]`)
	env.WaitCondition(edited, "Ready", metav1.ConditionFalse, "InvalidValues")
	env.ExpectRevisions("edited", "1 deployed")
	expectData(t, env, "edited-0", "message", "small")

	env.Delete(append(large, edited)...)
	env.WaitGone(append(large, edited)...)
	env.ExpectRevisions("edited", "")
	small("after-the-deletion")
	t.Logf("after a restart the operator's peak memory is %d MiB", operator.HighWater()>>20)
}

// emptyMaps returns the JSON of a list of empty maps: three bytes each, and a
// hundred times as much memory as Go maps.
func emptyMaps(count int) string { return "[" + strings.Repeat("{},", count-1) + "{}]" }

func text(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	data, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
