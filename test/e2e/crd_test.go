package e2e

import (
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestKind_StartsWhenCRDAppears(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	there, late := env.NewKind("Plain"), env.NewKind("Late")
	env.InstallCRD(there)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(
			harness.MakeEntry(late, harness.Chart("plain")),
			harness.MakeEntry(there, harness.Chart("plain")),
		),
		Account: env.NewAccount(),
	}).Start()
	web := harness.MakeCR(there, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	if err := operator.Probe(t.Context(), "/readyz"); err != nil {
		t.Errorf("the operator is not ready without the CRD: %v", err)
	}

	env.InstallCRD(late)
	api := harness.MakeCR(late, "api").Obj()
	env.Create(api)
	env.WaitReady(api)
	env.ExpectRevisions("api", "1 deployed")

	env.SetSpec(harness.MakeCR(there, "web").Set("message", "on").Obj())
	env.WaitRevision(web, 2)
	if err := operator.Probe(t.Context(), "/readyz"); err != nil {
		t.Error(err)
	}
}
