// Package e2e tests what users observe: the operator's process against a real
// Kubernetes, only through the API, kubectl and helm.
package e2e

import (
	"maps"
	"os"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m, unusedPermissions...)) }

// serve starts an operator for a kind of this test. The entry of the kind may
// have additional keys.
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
