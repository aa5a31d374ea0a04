// Package e2e tests what users see: the operator as a process, on a real
// Kubernetes, through the API, kubectl and helm alone.
package e2e

import (
	"maps"
	"os"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m, neverUsed...)) }

// serve starts an operator for one kind of the test's own, whose entry may have
// further keys.
func serve(env *harness.Env, name, chart string, keys ...harness.Entry) (harness.Kind, *harness.Operator) {
	kind := env.NewKind(name)
	env.InstallCRD(kind)
	entry := harness.MakeEntry(kind, harness.Chart(chart))
	for _, more := range keys {
		maps.Copy(entry, more)
	}
	return kind, env.NewOperator(harness.Options{
		Watches: env.Watches(entry),
		Account: env.NewAccount(),
	}).Start()
}
