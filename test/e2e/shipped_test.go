package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// shipped serves a kind of the repository with its entry in watches.yaml, and
// with another chart if one is given.
func shipped(env *harness.Env, kind harness.Kind, chart string, account harness.Account, args ...string) *harness.Operator {
	env.T().Helper()
	entry := env.Shipped(kind)
	if chart != "" {
		entry = entry.With("chart", chart)
	}
	return env.NewOperator(harness.Options{Watches: env.Watches(entry), Account: account, Args: args}).Start()
}

// shippedAccount installs a kind of the repository and returns the account of
// its operator.
func shippedAccount(env *harness.Env, kind harness.Kind) harness.Account {
	env.T().Helper()
	env.InstallDerivedCRDs(env.Watches(env.Shipped(kind)), kind)
	return env.NewAccount()
}

// changedChart writes a copy of one of the repository's charts with a newer
// version, whose objects have an additional label.
func changedChart(env *harness.Env, chart string) string {
	env.T().Helper()
	return copyChart(env, chart, map[string][2]string{
		"Chart.yaml":             {"version: 0.1.0", "version: 0.2.0"},
		"templates/_helpers.tpl": {".labels\" -}}\n", ".labels\" -}}\nexample.com/chart: later\n"},
	})
}

// copyChart writes a copy of a chart and replaces a text in each of some files.
func copyChart(env *harness.Env, chart string, changes map[string][2]string) string {
	env.T().Helper()
	dir := filepath.Join(env.T().TempDir(), filepath.Base(chart))
	must := func(err error) {
		env.T().Helper()
		if err != nil {
			env.T().Fatal(err)
		}
	}
	must(os.CopyFS(dir, os.DirFS(chart)))
	for file, change := range changes {
		file = filepath.Join(dir, file)
		data, err := os.ReadFile(file)
		must(err)
		changed := strings.Replace(string(data), change[0], change[1], 1)
		if changed == string(data) {
			env.T().Fatalf("%s does not contain %q", file, change[0])
		}
		must(os.WriteFile(file, []byte(changed), 0o600))
	}
	return dir
}

// kept are the kinds of objects that charts create, directly or indirectly.
const kept = "deployments,statefulsets,replicasets,controllerrevisions,pods,jobs,services,endpointslices," +
	"configmaps,secrets,serviceaccounts,persistentvolumeclaims"

// inNamespace lists the objects in the namespace.
func inNamespace(env *harness.Env) []string {
	env.T().Helper()
	names := strings.Fields(env.Kubectl("get", kept, "-o", "name"))
	slices.Sort(names)
	return names
}

// waitNamespace waits until the namespace has its default objects, and lists
// all objects.
func waitNamespace(env *harness.Env) (before []string) {
	env.T().Helper()
	env.Wait("the default objects of the namespace", func(context.Context) error {
		if before = inNamespace(env); len(before) < 2 {
			return fmt.Errorf("found %v", before)
		}
		return nil
	})
	return before
}

// waitNothingLeft waits until the namespace contains only the given objects.
func waitNothingLeft(env *harness.Env, before []string) {
	env.T().Helper()
	env.Wait("all objects to be deleted", func(context.Context) error {
		if now := inNamespace(env); !slices.Equal(now, before) {
			return fmt.Errorf("found %v, want %v", now, before)
		}
		return nil
	})
}

// runChartTests runs a chart's tests on request.
func runChartTests(t *testing.T, kind harness.Kind) {
	t.Helper()
	env := harness.NewShipped(t)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Annotate(web, "test", "now")
	env.WaitCondition(web, "Tested", metav1.ConditionTrue, "TestsPassed")
	env.WaitGone(harness.Object("v1", "Pod", "web-test"))
}

// testChartUpgrades installs a custom resource, upgrades it to a newer version
// of the chart, rolls it back and deletes it. A label of an object shows which
// chart is deployed.
func testChartUpgrades(t *testing.T, kind harness.Kind, spec map[string]any, object *unstructured.Unstructured) {
	t.Helper()
	env := harness.New(t)
	account := shippedAccount(env, kind)
	chart, ok := env.Shipped(kind)["chart"].(string)
	if !ok {
		t.Fatal("no chart label")
	}
	before := waitNamespace(env)

	operator := shipped(env, kind, "", account)
	web := harness.MakeCR(kind, "web").Obj()
	web.Object["spec"] = spec
	env.Create(web)
	env.WaitRevision(web, 1)
	label := func() string { return env.Get(object).GetLabels()["example.com/chart"] }
	if label() != "" {
		t.Fatal("the newer chart is deployed")
	}
	uid := env.Get(object).GetUID()

	operator.Stop()
	operator = shipped(env, kind, changedChart(env, chart), account)
	status := env.WaitRevision(web, 2)
	if status.Release.ChartVersion != "0.2.0" || label() != "later" {
		t.Errorf("after the upgrade the release is %+v, the label %q", status.Release, label())
	}

	env.Kubectl("annotate", kind.Resource(), "web", "chartwright.dev/rollback-to=previous")
	status = env.WaitRevision(web, 3)
	if status.Release.ChartVersion != "0.1.0" || label() != "" {
		t.Errorf("after the rollback the release is %+v, the label %q", status.Release, label())
	}
	// No object was recreated.
	if now := env.Get(object).GetUID(); now != uid {
		t.Errorf("%s was replaced", object.GetName())
	}
	env.Kubectl("annotate", "--overwrite", kind.Resource(), "web", "chartwright.dev/rollback-to=none")
	env.WaitRevision(web, 4)
	if label() != "later" {
		t.Error("the newer chart is not deployed again after the hold")
	}

	env.Kubectl("delete", kind.Resource(), "web", "--timeout=60s")
	waitNothingLeft(env, before)
	if !operator.Running() {
		t.Error("the operator has exited")
	}
}
