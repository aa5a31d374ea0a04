package corpus

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// demandedSecret is the Secret of the chart demanded-password.
const demandedSecret = "web-demanded-password"

// demanded is the row of the chart that requires its generated password in
// every upgrade. Its entry is the one that lint prints.
var demanded = row{
	name: "demanded-password", edit: values{"user": "second"},
	keys: harness.Entry{"valuesFrom": []watches.ValuesFrom{{
		Kind: watches.SourceSecret, Key: "user-password", TargetPath: "auth.password", Optional: true,
		Name: `{{ if contains "demanded-password" .metadata.name }}{{ .metadata.name }}{{ else }}{{ .metadata.name }}-demanded-password{{ end }}`,
	}}},
	// The values of the second revision contain the password.
	installs: 2,
	deployed: samePassword(demandedSecret, "user-password"),
	before:   passwordRedacted,
}

// sourcesFor returns the valuesFrom that lint prints for a chart.
func sourcesFor(chart *chart.Chart) ([]watches.ValuesFrom, error) {
	recipe, err := lint.GeneratedPasswords(catalog.Kind{Chart: chart})
	if err == nil && len(recipe.Unknown) > 0 {
		err = fmt.Errorf("%s", recipe)
	}
	return recipe.Sources, err
}

// TestDemandedPassword_EntryEqualsOutputOfLint compares the row's entry with
// the output of lint.
func TestDemandedPassword_EntryEqualsOutputOfLint(t *testing.T) {
	t.Parallel()
	chart, err := catalog.OpenChart(harness.Root("test", "corpus", "testdata", demanded.name))
	if err != nil {
		t.Fatal(err)
	}
	got, err := sourcesFor(chart)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(demanded.keys["valuesFrom"]); fmt.Sprint(got) != want {
		t.Errorf("lint prints %v, want %s", got, want)
	}
}

// passwordRedacted checks that the password is not in any output that users can
// read.
func passwordRedacted(tr *trial) {
	tr.t.Helper()
	password, err := base64.StdEncoding.DecodeString(tr.remembered)
	if err != nil {
		tr.t.Fatal(err)
	}
	resource, err := json.Marshal(tr.env.Get(tr.cr).Object)
	if err != nil {
		tr.t.Fatal(err)
	}
	for where, text := range map[string]string{
		"the custom resource": string(resource),
		"an event":            tr.env.Kubectl("get", "events", "-o", "yaml"),
		"the log":             tr.operator.Log(),
	} {
		if strings.Contains(text, string(password)) || strings.Contains(text, tr.remembered) {
			tr.t.Errorf("%s contains the password", where)
		}
	}
}

// TestDemandedPassword_SecretIsDeleted deletes the Secret that is the source of
// values. The operator recreates it from the release record, with the same
// password.
func TestDemandedPassword_SecretIsDeleted(t *testing.T) {
	t.Parallel()
	r := demanded
	r.chart = harness.Root("test", "corpus", "testdata", r.name)
	tr := start(t, r)
	tr.cr.Object["spec"] = values{}
	tr.env.Create(tr.cr)
	tr.ready(2)
	before := tr.env.Get(harness.Secret(demandedSecret))

	tr.env.Delete(harness.Secret(demandedSecret))
	tr.env.Wait("the Secret to be recreated with its password", func(ctx context.Context) error {
		live, err := tr.env.At(before).Get(ctx, demandedSecret, metav1.GetOptions{})
		if err != nil {
			cr, _ := tr.env.At(tr.cr).Get(ctx, "web", metav1.GetOptions{})
			return fmt.Errorf("%w; status %v", err, cr.Object["status"])
		}
		want, _, _ := unstructured.NestedString(before.Object, "data", "user-password")
		if got, _, _ := unstructured.NestedString(live.Object, "data", "user-password"); live.GetUID() == before.GetUID() || got != want {
			return fmt.Errorf("UID %s, same password: %t", live.GetUID(), got == want)
		}
		return nil
	})
}
