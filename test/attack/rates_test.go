package attack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestShare: one tenant uses only a share of the operator's slots, time and
// requests.
func TestShare(t *testing.T) {
	a := newArena(t)
	a.attack("OfRequestsByPeriod", (*arena).shortPeriods)
	a.attack("OfRequestsByAnnotation", (*arena).requests)
	// Their actions last longer than their custom resources, and would delay those of
	// the attacks above.
	a.attack("OfSlots", (*arena).takeSlots)
	a.attack("OfSlotsByManyObjects", (*arena).applyManyObjects)
	// The last attacks, because they replace the operator.
	a.attack("OfARollout", (*arena).stopRollout)
	a.attack("OfARolloutByEdits", (*arena).delayRollout)
}

func (a *arena) takeSlots() {
	others := a.watchOthers()
	var bombs []*unstructured.Unstructured
	for i := range 20 {
		bombs = append(bombs, harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).
			Set("text", `{{ range until 1000 }}{{ $x := genPrivateKey "rsa" }}{{ end }}`).Obj())
	}
	a.author.Create(bombs...)
	others.before(several)
	a.intact()
}

// applyManyObjects occupies slots with actions that take long because of the
// number of objects.
func (a *arena) applyManyObjects() {
	others := a.watchOthers()
	notes(20, manyObjects)(a)
	others.before(several)
	a.intact()
}

// manyObjects returns a note that adds 200 ConfigMaps to a manifest.
func manyObjects(i int) string {
	var text strings.Builder
	text.WriteString("x\n")
	for j := range 200 {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%d-%d}\ndata: {a: b}\n", i, j)
	}
	fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: last-%d\ndata:\n  a: b", i)
	return text.String()
}

// mostRequests is the maximum number of requests per second that custom
// resources may cause by annotations. Without a limit, thirty custom resources
// with a short period caused 446.
const mostRequests = 60

func (a *arena) shortPeriods() {
	crs := a.crs(30, map[string]string{api.AnnotationReconcilePeriod: "100ms"})
	others := a.watchOthers()
	rate := a.rate()
	others.served(few)
	if rate > mostRequests {
		a.t.Errorf("%d resources with a reconcile-period of 100ms cause %.0f requests/s, want at most %d", len(crs), rate, mostRequests)
	}
	a.intact()
}

// requests uses few custom resources, so that their burst is soon exhausted.
func (a *arena) requests() {
	crs := a.crs(5, nil)
	others := a.watchOthers()
	ctx, stop := context.WithCancel(a.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, api.AnnotationReconcile, i)
			_, err := a.author.At(crs[0]).Patch(ctx, crs[i%len(crs)].GetName(), "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				a.t.Error(err)
				return
			}
		}
	}()
	rate := a.rate()
	others.served(few)
	stop()
	<-done
	if rate > mostRequests {
		a.t.Errorf("requests by annotation cause %.0f requests/s of the operator, want at most %d", rate, mostRequests)
	}
	a.intact()
}

// crs creates custom resources of the author with annotations, and waits for
// them.
func (a *arena) crs(n int, annotations map[string]string) []*unstructured.Unstructured {
	a.t.Helper()
	var crs []*unstructured.Unstructured
	for i := range n {
		cr := harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Obj()
		cr.SetAnnotations(annotations)
		crs = append(crs, cr)
	}
	a.author.Create(crs...)
	a.author.WaitReady(crs...)
	return crs
}

// rate measures the operator's requests per second in the attackers' namespace. A slow
// machine makes fewer requests.
func (a *arena) rate() float64 {
	a.t.Helper()
	audit := a.admin.Audit(a.operator.User())
	began := time.Now()
	// Long enough that the burst, which is allowed, is a small part.
	a.admin.Consistently("running", 8*time.Second, func(context.Context) error { return a.operator.Survived() })
	took := time.Since(began)
	requests := len(audit.Requests())
	a.t.Logf("%d requests of the operator in %s", requests, took.Round(time.Millisecond))
	return float64(requests) / took.Seconds()
}

// stopRollout makes an upgrade in the first namespace, the attacker's, fail.
// The victim's resources must still receive the new chart.
func (a *arena) stopRollout() {
	// The actions of earlier attacks end.
	a.operator.Stop()
	a.operator.Start()
	bomb := harness.MakeCR(a.plain, "bomb").Set("text", `{{ if ne .Chart.Version "1.0.0" }}{{ fail "no" }}{{ end }}`).Obj()
	a.author.Create(bomb)
	a.author.WaitReady(bomb)
	a.rollOut(a.plain, 0, "open", func() {})
}

// delayRollout edits a custom resource that has the only place of the rollout, and that is never
// ready with the new chart: each edit starts a new deadline.
func (a *arena) delayRollout() {
	bomb := harness.MakeCR(a.reading, "bomb").Set("later", true)
	a.author.Create(bomb.Obj())
	a.author.WaitReady(bomb.Obj())
	edits := 0
	a.rollOut(a.reading, 4, "reading", func() {
		status := a.author.Status(bomb.Obj())
		if status.Release.ChartVersion == "1.0.1" && status.Release.Revision == int64(2+edits) && edits < 5 {
			edits++
			a.author.SetSpec(bomb.Set("edit", edits).Obj())
		}
	})
	if edits == 0 {
		a.t.Error("the custom resource was not the first of the rollout")
	}
}

// rollOut replaces the chart of a kind, and waits until custom resources of another namespace
// have it. It calls during again and again.
func (a *arena) rollOut(kind harness.Kind, entry int, name string, during func()) {
	var victims []*unstructured.Unstructured
	for i := range 5 {
		victims = append(victims, harness.MakeCR(kind, fmt.Sprintf("web-%d", i)).Obj())
	}
	a.victim.Create(victims...)
	a.victim.WaitReady(victims...)
	a.operator.Stop()
	entries := a.entries("open")
	entries[entry] = entries[entry].With("chart", a.nextVersion(name)).With("rollout", map[string]any{"maxConcurrent": 1}).With("maxHistory", 10)
	a.operator = a.admin.NewOperator(harness.Options{
		Name: a.operator.Name(), Watches: a.admin.Watches(entries...), Account: a.account,
		AllNamespaces: true, Memory: a.memory,
	}).Start()
	others := a.watchOthers()
	a.whileAlive("the new chart to reach the other namespace", func(ctx context.Context) error {
		during()
		for _, cr := range victims {
			live, err := a.victim.At(cr).Get(ctx, cr.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			status, err := harness.StatusOf(live)
			if err != nil {
				return err
			}
			if status.Release == nil || status.Release.ChartVersion != "1.0.1" {
				return fmt.Errorf("%s has the status %v", cr.GetName(), live.Object["status"])
			}
		}
		return nil
	})
	others.served(few)
	a.intact()
	a.victim.Delete(victims...)
}

// nextVersion copies a chart with version 1.0.1.
func (a *arena) nextVersion(name string) string {
	a.t.Helper()
	folder := filepath.Join(a.t.TempDir(), name)
	if err := os.CopyFS(folder, os.DirFS(chart(name))); err != nil {
		a.t.Fatal(err)
	}
	file := filepath.Join(folder, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		a.t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "version: 1.0.0", "version: 1.0.1", 1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return folder
}
