package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// libraryHelpers have the shapes that are common in library charts: one checks
// the API in its argument, another, which no template includes, reads the whole
// of .Capabilities.
const libraryHelpers = `
{{- define "library.hasAPI" -}}
{{- $given := default .context.Values.apiVersions ((.context.Values.global).apiVersions) -}}
{{- if and (empty $given) (.context.Capabilities.APIVersions.Has .api) }}yes{{ else if has .api $given }}yes{{ end -}}
{{- end -}}
{{- define "library.oldHelm" -}}
{{- if not (contains "HelmVersion" (.Capabilities | toString)) }}yes{{ end -}}
{{- end -}}
`

// libraryChart writes a chart that checks for one API through a helper of a
// library.
func libraryChart(t *testing.T, api string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "asking")
	for name, text := range map[string]string{
		"Chart.yaml":                            "apiVersion: v2\nname: asking\nversion: 1.0.0\ndependencies: [{name: library, version: 1.0.0}]\n",
		"values.yaml":                           "global: {}\napiVersions: []\n",
		"charts/library/Chart.yaml":             "apiVersion: v2\nname: library\nversion: 1.0.0\ntype: library\n",
		"charts/library/templates/_helpers.tpl": libraryHelpers,
		"templates/configmap.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  served: {{ include \"library.hasAPI\" (dict \"api\" \"" + api + "\" \"context\" $) | quote }}\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLibraryChart_UpgradesOnlyForCheckedAPI(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	asking, guarded, unrelated, late := env.NewKind("Asking"), env.NewKind("Guarded"), env.NewKind("Unrelated"), env.NewKind("Late")
	env.InstallCRD(asking)
	env.InstallCRD(guarded)
	env.NewOperator(harness.Options{
		Watches: env.Watches(
			harness.MakeEntry(asking, libraryChart(t, late.GroupVersion().String()+"/Late")),
			harness.MakeEntry(guarded, harness.Chart("guarded")),
		),
		Account: env.NewAccount(),
	}).Start()
	// The chart of witness may check for any API, so that each new CRD upgrades
	// it.
	web, witness := harness.MakeCR(asking, "web").Obj(), harness.MakeCR(guarded, "witness").Set("api", "v1").Obj()
	env.Create(web, witness)
	env.WaitReady(web, witness)
	upgraded := func(by func()) {
		t.Helper()
		before := env.WaitReady(witness).Release.Revision
		by()
		env.Wait("the chart that may check for any API to be upgraded", func(context.Context) error {
			if env.WaitReady(witness).Release.Revision == before {
				return errors.New("it was not upgraded")
			}
			return nil
		})
	}
	upgraded(func() { env.InstallCRD(unrelated) })
	upgraded(func() {
		env.Delete(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", unrelated.Resource()))
	})
	env.ExpectRevisions("web", "1 deployed")
	expectData(t, env, "web", "served", "")

	env.InstallCRD(late)
	env.WaitRevision(web, 2)
	env.WaitReady(web)
	expectData(t, env, "web", "served", "yes")
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
}
