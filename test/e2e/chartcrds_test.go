package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// definitions writes a copy of the chart whose CRD has the given group and
// fields.
func definitions(env *harness.Env, group string, fields ...string) string {
	env.T().Helper()
	dir := filepath.Join(env.T().TempDir(), "definitions")
	if err := os.CopyFS(dir, os.DirFS(harness.Chart("definitions"))); err != nil {
		env.T().Fatal(err)
	}
	file := filepath.Join(dir, "crds", "gadgets.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		env.T().Fatal(err)
	}
	indent := strings.Repeat(" ", 16)
	text := strings.ReplaceAll(string(data), "GROUP", group)
	text = strings.ReplaceAll(text, "FIELD: {type: string}", strings.Join(fields, ": {type: string}\n"+indent)+": {type: string}")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		env.T().Fatal(err)
	}
	return dir
}

// expectFields checks the fields of the first version of a CRD.
func expectFields(env *harness.Env, crd *unstructured.Unstructured, want ...string) {
	env.T().Helper()
	versions, _, _ := unstructured.NestedSlice(env.Get(crd).Object, "spec", "versions")
	properties, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if got := sortedKeys(properties); strings.Join(got, " ") != strings.Join(want, " ") {
		env.T().Errorf("the CRD has fields %v, want %v", got, want)
	}
}

// Each step runs another process with another chart or another policy.
func TestChartCRDs_Policies(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Definer")
	env.InstallCRD(kind)
	account := env.NewAccount()
	group := "gadgets." + env.Namespace + ".test"
	crd := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gadgets."+group)
	t.Cleanup(func() {
		err := env.At(crd).Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	web := harness.MakeCR(kind, "web").Obj()
	first := true
	for _, step := range []struct {
		name, policy string
		fields       []string
		reason       string
		// has are the fields of the CRD afterwards; empty means that there is
		// no CRD.
		has []string
	}{
		{"skip", "Skip", []string{"a"}, "Deployed", nil},
		{"create", "", []string{"a"}, "Deployed", []string{"a"}},
		{"create does not change an existing CRD", "Create", []string{"a", "b"}, "Deployed", []string{"a"}},
		{"replace", "Replace", []string{"a", "c"}, "Deployed", []string{"a", "c"}},
		{"replace waits for the approval of a breaking change", "Replace", []string{"a"}, "ApprovalRequired", []string{"a"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			env := env.For(t)
			entry := harness.MakeEntry(kind, definitions(env, group, step.fields...))
			if step.policy != "" {
				entry.With("crds", step.policy)
			}
			operator := env.NewOperator(harness.Options{Watches: env.Watches(entry), Account: account})
			spec := harness.MakeCR(kind, "web").Set("word", step.name).Obj()
			if first {
				env.Create(spec)
			} else {
				env.SetSpec(spec)
			}
			first = false
			audit := env.Audit(operator.User())
			operator.Start()
			if step.reason == "Deployed" {
				env.WaitCondition(web, "Ready", metav1.ConditionTrue, step.reason)
			} else {
				plan := waitApproval(env, web, "replace CustomResourceDefinition "+crd.GetName()+" (spec.c: removed")
				expectUnwritten(t, audit, web.GetName())
				expectUnwritten(t, audit, crd.GetName())
				expectFields(env, crd, "a", "c")
				env.Annotate(web, "approve", plan.Digest)
				env.WaitCondition(web, "Ready", metav1.ConditionTrue, "Deployed")
			}
			if step.has == nil {
				env.WaitGone(crd)
				return
			}
			expectFields(env, crd, step.has...)
		})
	}
	// No release owns the CRD.
	operator := env.NewOperator(harness.Options{Watches: env.Watches(harness.MakeEntry(kind, definitions(env, group, "a"))), Account: account})
	operator.Start()
	env.Delete(web)
	env.WaitGone(web)
	env.Get(crd)
}
