package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// dependent has a kind Store and a kind Shop. A Shop depends on a Store.
type dependent struct {
	*harness.Env
	stores, shops harness.Kind
	// account, operator and charts are set if the test has an operator of its own.
	account  harness.Account
	operator *harness.Operator
	// charts are the charts of both kinds by version.
	charts map[string][2]string
}

// newDependent is useDependent for an operator of its own, see serve. The pods of a
// Store are ready two seconds after they start.
func newDependent(t *testing.T) *dependent {
	t.Helper()
	env := harness.New(t)
	d := &dependent{
		Env: env, stores: env.NewKind("Store"), shops: env.NewKind("Shop"), account: env.NewAccount(), charts: map[string][2]string{},
	}
	env.InstallCRD(d.stores)
	env.InstallCRD(d.shops)
	store := copyChart(env, harness.Chart("workloads"), map[string][2]string{
		"templates/all.yaml": {"  replicas: {{ .Values.replicas }}", "  minReadySeconds: 2\n  replicas: {{ .Values.replicas }}"},
	})
	d.charts["0.1.0"] = [2]string{store, harness.Chart("plain")}
	d.charts["0.2.0"] = [2]string{
		copyChart(env, store, map[string][2]string{
			"Chart.yaml":         {"version: 0.1.0", "version: 0.2.0"},
			"templates/all.yaml": {"annotations:\n        test", "annotations:\n        example.com/chart: later\n        test"},
		}),
		copyChart(env, harness.Chart("plain"), map[string][2]string{"Chart.yaml": {"version: 1.2.3", "version: 9.0.0"}}),
	}
	return d
}

// serve stops the running operator, if any, and starts one with a version of the charts.
func (d *dependent) serve(version string) {
	d.T().Helper()
	if d.operator != nil {
		d.operator.Stop()
	}
	shops := harness.MakeEntry(d.shops, d.charts[version][1])
	maps.Copy(shops, dependsOn(d.stores))
	d.operator = d.NewOperator(harness.Options{
		Watches: d.Watches(harness.MakeEntry(d.stores, d.charts[version][0]), shops), Account: d.account,
	}).Start()
}

// dependsOn returns the key of an entry whose custom resources name a Store in
// their spec.
func dependsOn(stores harness.Kind) harness.Entry {
	return harness.Entry{"dependsOn": []any{map[string]any{
		"apiVersion": stores.GroupVersion().String(), "kind": stores.Kind, "name": `{{ dig "spec" "store" "" . }}`,
	}}}
}

// useDependent returns the Stores and one kind of Shops that tests share.
func useDependent(t *testing.T, shops harness.Kind) *dependent {
	t.Helper()
	env := harness.New(t)
	return &dependent{Env: env, stores: env.Use(storeKind), shops: env.Use(shops)}
}

func (d *dependent) store(name string) *unstructured.Unstructured {
	return harness.MakeCR(d.stores, name).Obj()
}

func (d *dependent) shop(name, store string) *unstructured.Unstructured {
	return harness.MakeCR(d.shops, name).Set("store", store).Obj()
}

// waitUpgraded waits until a custom resource has a revision, and fails if the one that it
// depends on is not at that revision and Ready by then.
func (d *dependent) waitUpgraded(shop, store *unstructured.Unstructured, revision int64) {
	d.T().Helper()
	d.Wait(fmt.Sprintf("%s to have revision %d", shop.GetName(), revision), func(context.Context) error {
		if found := d.Revisions(shop.GetName()); !strings.Contains(found, fmt.Sprintf("%d ", revision)) {
			return fmt.Errorf("it has the revisions %q", found)
		}
		return nil
	})
	live := d.Get(store)
	status, err := harness.StatusOf(live)
	if err != nil {
		d.T().Fatal(err)
	}
	if ready := harness.Condition(status, api.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != live.GetGeneration() || status.Release.Revision != revision {
		d.T().Errorf("%s has revision %d, and %s is at revision %d with the condition Ready %+v", shop.GetName(), revision, store.GetName(), status.Release.Revision, ready)
	}
	d.WaitRevision(shop, revision)
}

// waitReason waits until the condition Ready is False with a reason, and returns its message.
func (d *dependent) waitReason(cr *unstructured.Unstructured, reason string) string {
	d.T().Helper()
	return harness.Condition(d.WaitCondition(cr, api.ConditionReady, metav1.ConditionFalse, reason), api.ConditionReady).Message
}

// waitNamed waits until the status of a custom resource names these dependencies and no others.
func (d *dependent) waitNamed(cr *unstructured.Unstructured, want ...api.DependencyStatus) {
	d.T().Helper()
	d.WaitStatus(cr, fmt.Sprintf("reported with %d dependencies", len(want)), func(status api.Status) error {
		if !slices.Equal(status.Dependencies, want) {
			return fmt.Errorf("the status names %v", status.Dependencies)
		}
		return nil
	})
}

func TestDependencies_OrderInstallsAndUpgrades(t *testing.T) {
	t.Parallel()
	d := newDependent(t)
	d.serve("0.1.0")
	store, shop := d.store("db"), d.shop("shop", "db")
	free := harness.MakeCR(d.shops, "free").Obj()
	d.Create(shop, free)
	if message := d.waitReason(shop, api.ReasonDependencyNotReady); message != "Waits for Store db: not found" {
		t.Errorf("the message is %q", message)
	}
	d.WaitReady(free)
	if found := d.Revisions("shop"); found != "" {
		t.Errorf("the release that waits has the revisions %q", found)
	}
	d.waitNamed(shop, api.DependencyStatus{APIVersion: d.stores.GroupVersion().String(), Kind: "Store", Namespace: d.Namespace, Name: "db"})
	d.waitNamed(free)
	d.Create(store)
	d.waitUpgraded(shop, store, 1)

	// The user edits the dependency first.
	d.Patch(store, `[{"op":"add","path":"/spec","value":{"replicas":2}}]`)
	d.Patch(shop, `[{"op":"add","path":"/spec/message","value":"edited"}]`)
	d.waitUpgraded(shop, store, 2)

	// Both charts change while the operator is down.
	d.serve("0.2.0")
	d.waitUpgraded(shop, store, 3)
	if status := d.WaitReady(free); status.Release.Revision != 2 {
		t.Errorf("the release without dependencies is at revision %d", status.Release.Revision)
	}

	// A rollback does not wait.
	d.Delete(store)
	d.waitReason(store, api.ReasonInUse)
	// A restart of the operator does not end the wait of the deletion.
	d.serve("0.2.0")
	d.Annotate(shop, api.AnnotationRollbackTo, "2")
	d.WaitRevision(shop, 4)
	d.waitReason(store, api.ReasonInUse)
	if found := d.Revisions("db"); !strings.HasSuffix(found, "3 deployed") {
		t.Errorf("the release in use has the revisions %q", found)
	}
}

func TestDependencies_DeleteInReverseOrder(t *testing.T) {
	t.Parallel()
	d := useDependent(t, shopKind)
	store, shop, other := d.store("db"), d.shop("shop", "db"), d.store("other")
	second := d.shop("second", "other")
	d.Create(store, shop, other, second)
	d.WaitReady(store, shop, other, second)

	d.Delete(store)
	if message := d.waitReason(store, api.ReasonInUse); !strings.HasPrefix(message, "In use by Shop shop: ") {
		t.Errorf("the message is %q", message)
	}
	d.WaitEvent(store, api.ReasonInUse)
	if found := d.Revisions("db"); found != "1 deployed" {
		t.Errorf("the release in use has the revisions %q", found)
	}
	d.Delete(shop)
	d.WaitGone(shop, store)

	d.Delete(other)
	d.waitReason(other, api.ReasonInUse)
	d.Annotate(other, api.AnnotationDeletionOrder, api.DeletionOrderIgnore)
	d.WaitGone(other)
	d.WaitReady(second)
}

func TestDependencies_AnnotationAndCycles(t *testing.T) {
	t.Parallel()
	d := useDependent(t, shopKind)
	item := func(kind harness.Kind, name string) string { return kind.GroupKind().String() + "/" + name }
	one, two := harness.MakeCR(d.shops, "one").Obj(), harness.MakeCR(d.shops, "two").Obj()
	one.SetAnnotations(map[string]string{api.AnnotationDependsOn: item(d.shops, "two")})
	two.SetAnnotations(map[string]string{api.AnnotationDependsOn: item(d.shops, "one")})
	d.Create(one, two)
	for _, cr := range []*unstructured.Unstructured{one, two} {
		if message := d.waitReason(cr, api.ReasonDependencyCycle); !strings.Contains(message, "Shop one → Shop two → Shop one") {
			t.Errorf("the message is %q", message)
		}
	}
	// The edge to an object of Kubernetes replaces the one that closes the cycle.
	d.Annotate(two, api.AnnotationDependsOn, "Secret/settings")
	if message := d.waitReason(two, api.ReasonDependencyNotReady); message != "Waits for Secret settings: not found" {
		t.Errorf("the message is %q", message)
	}
	waitNotReady(d.Env, one, api.ReasonDependencyNotReady, "Waits for Shop two: Waits for Secret settings: not found")
	d.Create(harness.Secret("settings"))
	d.WaitReady(one, two)
	d.waitNamed(two, api.DependencyStatus{APIVersion: "v1", Kind: "Secret", Namespace: d.Namespace, Name: "settings"})
	d.Unannotate(two, api.AnnotationDependsOn)
	d.waitNamed(two)

	d.Annotate(two, api.AnnotationDependsOn, "ConfigMap/settings")
	if message := d.waitReason(two, api.ReasonInvalidValues); !strings.Contains(message, "Secret") {
		t.Errorf("the message is %q", message)
	}
}
