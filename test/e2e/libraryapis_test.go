package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The helpers of the chart have the shapes that are common in library charts: one
// checks the API in its argument, another, which no template includes, reads the
// whole of .Capabilities.
func TestLibraryChart_UpgradesOnlyForCheckedAPI(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	asking, guarded, unrelated := env.Use(askingKind), env.Use(guardedKind), env.NewKind("Unrelated")
	// The chart of witness may check for any API, so that each new CRD upgrades
	// it.
	web, witness := harness.MakeCR(asking, "web").Obj(), harness.MakeCR(guarded, "witness").Set("api", "v1").Obj()
	env.Create(web, witness)
	env.WaitReady(web, witness)
	upgraded := func(by func()) {
		t.Helper()
		before := env.WaitReady(witness).Release.Revision
		by()
		env.Wait("the chart that may check for any API to be upgraded", func(context.Context) error {
			if env.WaitReady(witness).Release.Revision == before {
				return errors.New("it was not upgraded")
			}
			return nil
		})
	}
	upgraded(func() { env.InstallCRD(unrelated) })
	upgraded(func() {
		env.Delete(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", unrelated.Resource()))
	})
	env.ExpectRevisions("web", "1 deployed")
	expectData(t, env, "web", "served", "")

	env.InstallCRD(askedKind)
	env.WaitRevision(web, 2)
	env.WaitReady(web)
	expectData(t, env, "web", "served", "yes")
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
}
