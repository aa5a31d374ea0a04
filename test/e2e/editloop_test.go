package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestEditLoop_CausesFewActions: a client edits a custom resource 150 times in
// 15 seconds and requests verifications and tests meanwhile. The operator
// upgrades the release a few times and ends with the last edit. It serves
// another custom resource meanwhile, and also the deletion of the first.
func TestEditLoop_CausesFewActions(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Set("message", "0").Obj()
	env.Create(web)
	env.WaitRevision(web, 1)

	const edits, length = 150, 15 * time.Second
	audit := env.Audit(harness.SharedUser())
	began := time.Now()
	tick := time.NewTicker(length / edits)
	defer tick.Stop()
	for i := range edits {
		env.SetSpec(harness.MakeCR(kind, "web").Set("message", strconv.Itoa(i+1)).Obj())
		if i%10 == 0 {
			env.Annotate(web, "reconcile-requested-at", strconv.Itoa(i))
		}
		<-tick.C
	}
	took := time.Since(began)
	// The burst, then one upgrade per 6 seconds, and one for the last edit.
	most := 10 + int(took/(6*time.Second)) + 1
	waitData(env, "web-0", "message", strconv.Itoa(edits))
	env.Wait("the last edit to be reported", func(context.Context) error {
		status, generation := env.Status(web), env.Get(web).GetGeneration()
		ready := harness.Condition(status, "Ready")
		if ready == nil || ready.Status != "True" || ready.ObservedGeneration != generation {
			return fmt.Errorf("condition Ready is %+v at generation %d", ready, generation)
		}
		return nil
	})
	revision := int(env.Status(web).Release.Revision) - 1
	if revision > most {
		t.Errorf("%d edits in %s led to %d revisions, want at most %d", edits, took.Round(time.Second), revision, most)
	}
	requests := map[string]int{}
	total := 0
	for _, r := range audit.Requests() {
		requests[r.Verb+" "+r.ObjectRef.Resource+" "+r.ObjectRef.Subresource]++
		total++
	}
	// An upgrade takes about ten requests.
	if total > 15*most {
		t.Errorf("%d edits led to %d requests, want at most %d: %v", edits, total, 15*most, requests)
	}
	t.Logf("%d edits in %s: %d revisions, %d requests: %v", edits, took.Round(time.Second), revision, total, requests)

	db := harness.MakeCR(kind, "db").Obj()
	env.Create(db)
	env.WaitRevision(db, 1)
	for i := range 10 {
		env.SetSpec(harness.MakeCR(kind, "web").Set("message", fmt.Sprint("again ", i)).Obj())
	}
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	env.Wait("the drift to be corrected", func(context.Context) error {
		data, _ := env.Get(harness.ConfigMap("web-0")).Object["data"].(map[string]any)
		if data["message"] == "theirs" {
			return fmt.Errorf("the data is %v", data)
		}
		return nil
	})
	env.Delete(web)
	env.WaitGone(web, harness.ConfigMap("web-0"))
}
