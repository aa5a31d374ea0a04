package e2e

import (
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// If the API server does not support streaming lists, watches begin with a
// list. This needs a permission that is otherwise unused.
func TestStreamingLists_NotSupportedByServer(t *testing.T) {
	t.Parallel()
	e, entry := prepareEverything(t)
	workload, fixed, granting := e.NewKind("Workload"), e.NewKind("Fixed"), e.NewKind("Granting")
	e.InstallCRD(workload)
	e.InstallCRD(fixed)
	e.InstallCRD(granting)
	// The kinds of the repository, too.
	e.NewOperator(harness.Options{Name: e.Namespace + "-embedded", Env: []string{harness.NoStreamingLists}}).Start()
	e.NewOperator(harness.Options{
		Watches:       e.Watches(entry, harness.MakeEntry(workload, harness.Chart("workloads")), harness.MakeEntry(fixed, harness.Chart("fixed")), harness.MakeEntry(granting, harness.Chart("granting"))),
		AllNamespaces: true, Env: []string{harness.NoStreamingLists},
	}).Start()
	web, work, pinned := e.cr("web").Obj(), harness.MakeCR(workload, "work").Set("job.enabled", true).Obj(), harness.MakeCR(fixed, "pinned").Obj()
	grants := harness.MakeCR(granting, "grants").Set("reader", true).Obj()
	e.Create(web, work, pinned, grants)
	bind(e.Env, harness.Object("v1", "PersistentVolumeClaim", "pinned"))
	e.WaitReady(web, work, pinned, grants)
	e.Delete(web, work, pinned, grants)
	e.WaitGone(web, work, pinned, grants)
}
