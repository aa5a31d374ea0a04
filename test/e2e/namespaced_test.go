package e2e

import (
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// An operator that serves one namespace gets along with a Role in it, and the
// sight of definitions.
func TestRoleOfOneNamespace(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, hooks := env.NewKind("Workload"), env.NewKind("Hooks")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches:    env.Watches(harness.MakeEntry(kind, harness.Chart("workloads")), harness.MakeEntry(hooks, harness.Chart("hooks"))),
		Namespaced: true,
	}).Start()
	// This one comes later, which only the sight of definitions tells.
	env.InstallCRD(hooks)
	web, job := harness.MakeCR(kind, "web").Obj(), harness.MakeCR(hooks, "job").Set("hooks.post-install", map[string]any{}).Obj()
	env.Create(web, job)
	env.WaitReady(web, job)
	expectHook(t, env, "job-post-install", "hello")
	env.SetSpec(harness.MakeCR(hooks, "job").Set("message", "two").Obj())
	env.WaitRevision(job, 2)

	// A release whose records are gone is looked for in the namespace alone.
	operator.Stop()
	env.Kubectl("delete", "secret", "-l", "owner=helm,name=web")
	operator.Start()
	env.Delete(web, job)
	env.WaitGone(web, job, harness.ConfigMap("job"))
	env.ExpectRevisions("job", "")
}
