// Package e2e tests what users see: the operator as a process, on a real
// Kubernetes, through the API, kubectl and helm alone.
package e2e

import (
	"os"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m, neverUsed...)) }

// serve starts an operator for one kind of the test's own.
func serve(env *harness.Env, name, chart string) (harness.Kind, *harness.Operator) {
	kind := env.NewKind(name)
	env.InstallCRD(kind)
	return kind, env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart(chart))),
		Account: env.NewAccount(),
	}).Start()
}
