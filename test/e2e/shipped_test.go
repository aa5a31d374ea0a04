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
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// shipped serves a kind of the repository with its entry in watches.yaml, and
// with another chart if one is given.
func shipped(env *harness.Env, kind harness.Kind, chart string, account harness.Account) *harness.Operator {
	env.T().Helper()
	entry := env.Shipped(kind)
	if chart != "" {
		entry = entry.With("chart", chart)
	}
	return env.NewOperator(harness.Options{Watches: env.Watches(entry), Account: account}).Start()
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

// Custom resources are upgraded to a newer version of their chart, rolled back
// and deleted. A label of an object shows which chart is deployed.
func TestShippedKinds_UpgradeAndRollback(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	upgrades := []struct {
		kind   harness.Kind
		spec   map[string]any
		object func(name string) *unstructured.Unstructured
	}{
		{harness.PodSet, map[string]any{"replicas": int64(2)}, harness.Deployment},
		{harness.OvhNginx, map[string]any{"port": int64(80), "replicaCount": int64(1)}, harness.Service},
		{harness.Experimental, map[string]any{"isPublic": true, "numberOfReplicas": int64(2)}, func(name string) *unstructured.Unstructured {
			return harness.Object("apps/v1", "StatefulSet", name)
		}},
		{harness.VMGroup, map[string]any{"cpu": int64(2), "memory": int64(4), "template": "vm-operator-template", "replicas": int64(2)}, harness.ConfigMap},
		{harness.Addon, nil, func(name string) *unstructured.Unstructured { return harness.ConfigMap(name + "-tasks") }},
	}
	var kinds []harness.Kind
	var older, newer []harness.Entry
	for _, u := range upgrades {
		entry := env.Shipped(u.kind)
		kinds, older = append(kinds, u.kind), append(older, entry)
		newer = append(newer, env.Shipped(u.kind).With("chart", changedChart(env, fmt.Sprint(entry["chart"]))))
	}
	env.InstallDerivedCRDs(env.Watches(older...), kinds...)
	account, before := env.NewAccount(), waitNamespace(env)
	operator := env.NewOperator(harness.Options{Watches: env.Watches(older...), Account: account}).Start()
	uids := map[string]types.UID{}
	var all []*unstructured.Unstructured
	for _, u := range upgrades {
		cr := harness.MakeCR(u.kind, strings.ToLower(u.kind.Kind)).Obj()
		cr.Object["spec"] = u.spec
		all = append(all, cr)
	}
	env.Create(all...)
	for i, u := range upgrades {
		env.WaitRevision(all[i], 1)
		object := env.Get(u.object(all[i].GetName()))
		if uids[u.kind.Kind] = object.GetUID(); object.GetLabels()["example.com/chart"] != "" {
			t.Fatalf("the newer chart of %s is deployed", u.kind.Kind)
		}
	}
	operator.Stop()
	operator = env.NewOperator(harness.Options{Watches: env.Watches(newer...), Account: account}).Start()
	for i, u := range upgrades {
		t.Run(u.kind.Kind, func(t *testing.T) {
			env, cr := env.For(t), all[i]
			expect := func(revision int64, version, label string) {
				t.Helper()
				status, object := env.WaitRevision(cr, revision), env.Get(u.object(cr.GetName()))
				if status.Release.ChartVersion != version || object.GetLabels()["example.com/chart"] != label {
					t.Errorf("revision %d is %+v, the labels %v", revision, status.Release, object.GetLabels())
				}
				if object.GetUID() != uids[u.kind.Kind] {
					t.Errorf("%s was recreated", object.GetName())
				}
			}
			expect(2, "0.2.0", "later")
			env.Annotate(cr, "rollback-to", "previous")
			expect(3, "0.1.0", "")
			env.Annotate(cr, "rollback-to", "none")
			expect(4, "0.2.0", "later")
			env.Kubectl("delete", u.kind.Resource(), cr.GetName(), harness.Timeout)
		})
	}
	waitNothingLeft(env, before)
	if !operator.Running() {
		t.Error("the operator has exited")
	}
}
