package e2e

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// soon is the maximum duration of an install while another tenant floods the
// operator.
const soon = 5 * time.Second

// TestFairness_SlowTenantDelaysNoOther: a tenant creates 20 custom resources
// whose actions take long. Installs and edits of another tenant are not
// delayed.
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
				expectSoon(t, "an install", func() {
					other.Create(cr)
					other.WaitRevision(cr, 1)
				})
				expectSoon(t, "an edit", func() {
					other.SetSpec(harness.MakeCR(plain, cr.GetName()).Set("message", "two").Obj())
					other.WaitRevision(cr, 2)
				})
			}
			if !operator.Running() {
				t.Fatal("the operator has exited")
			}
		})
	}
}

// expectSoon fails if do takes longer than soon.
func expectSoon(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took, limit := time.Since(began), harness.TimeLimit(soon); took > limit {
		t.Errorf("%s of another tenant took %s, want %s at most", what, took.Round(100*time.Millisecond), limit)
	}
}
