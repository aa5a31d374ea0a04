package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestFairness_SlowTenantDelaysNoOther: a tenant creates 20 custom resources
// whose actions take long. Installs and edits of another tenant do not wait for
// all of them.
func TestFairness_SlowTenantDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, flood := range []struct {
		name, kind, field string
		value             any
	}{
		// They render until the time limit.
		{"renders", "Tenant", "text", `{{ range until 4000 }}{{ $x := genPrivateKey "rsa" }}{{ end }}`},
		// They render immediately, and occupy their slots while they apply.
		{"objects", "Plain", "count", 1000},
	} {
		t.Run(flood.name, func(t *testing.T) {
			env := harness.New(t)
			tenants, plain := env.NewKind("Tenant"), env.NewKind("Plain")
			env.InstallCRD(tenants)
			env.InstallCRD(plain)
			other := env.In(env.NewNamespace("other"))
			operator := env.NewOperator(harness.Options{
				Watches:       env.Watches(tenant(tenants), harness.MakeEntry(plain, harness.Chart("plain"))),
				AllNamespaces: true,
			}).Start()
			first := harness.MakeCR(plain, "first").Obj()
			other.Create(first)
			other.WaitRevision(first, 1)

			kind := map[string]harness.Kind{"Tenant": tenants, "Plain": plain}[flood.kind]
			var slow []*unstructured.Unstructured
			for i := range 20 {
				slow = append(slow, harness.MakeCR(kind, "slow-"+strconv.Itoa(i)).Set(flood.field, flood.value).Obj())
			}
			env.Create(slow...)
			for i := range 3 {
				cr := harness.MakeCR(plain, "web-"+strconv.Itoa(i)).Set("message", "one").Obj()
				other.Create(cr)
				other.WaitRevision(cr, 1)
				other.SetSpec(harness.MakeCR(plain, cr.GetName()).Set("message", "two").Obj())
				other.WaitRevision(cr, 2)
			}
			if !slices.ContainsFunc(slow, func(cr *unstructured.Unstructured) bool { return unprocessed(env, cr) }) {
				t.Error("the other tenant waited for all slow actions")
			}
			if !operator.Running() {
				t.Fatal("the operator has exited")
			}
		})
	}
}

// unprocessed reports whether the first action of a custom resource has neither
// succeeded nor failed.
func unprocessed(env *harness.Env, cr *unstructured.Unstructured) bool {
	deployed := harness.Condition(env.Status(cr), api.ConditionDeployed)
	ready := harness.Condition(env.Status(cr), api.ConditionReady)
	return (deployed == nil || deployed.Status != metav1.ConditionTrue) &&
		(ready == nil || !strings.HasSuffix(ready.Reason, "Failed"))
}
