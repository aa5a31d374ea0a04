package scaffold_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func TestUpdate_ReportsChanges(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	add(t, dir, scaffold.Add{Fetched: box(t, "1.0.0", "size: 1\nold: {a: true}\n")})
	plan, err := project(dir).Update(scaffold.Update{Kind: "Box", Fetched: *fetchedChart(t, "2.0.0", map[string]string{
		"values.yaml":      "size: 2\nnew: []\n",
		"templates/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\nstringData: {size: {{ .Values.size | quote }}}\n",
		"templates/b.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Release.Name }}}\nspec: {containers: [{name: a, image: nginx}]}\n",
	}), AllowBreaking: true})
	write(t, plan, err)

	c := plan.Changes
	if c.From != "1.0.0" || c.To != "2.0.0" || c.CRD.Name != "boxes.example.com" || c.CRD.Breaking() == 0 {
		t.Errorf("got %+v", c)
	}
	for name, test := range map[string]struct{ got, want []string }{
		"values": {c.Values, []string{"+ new: []", "~ size: 1 -> 2", "- old.a"}},
		"images": {c.Images, []string{"+ nginx"}},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("%s: %q, want %q", name, test.got, test.want)
		}
	}
	rules := strings.Join(c.Permissions, "\n")
	for _, want := range []string{`+ {apiGroups: [""], resources: ["pods"]`, `- {apiGroups: [""], resources: ["configmaps"]`} {
		if !strings.Contains(rules, want) {
			t.Errorf("permissions:\n%s\nwant %q", rules, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "config", "samples", "example_v1alpha1_box.yaml"))
	if err != nil || !strings.Contains(string(text), "new: []") {
		t.Errorf("the sample is that of the previous version, %v:\n%s", err, text)
	}
}

func TestUpdate_BreakingChangeNeedsFlag(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	of := func(version, kind string) *scaffold.Fetched {
		return fetchedChart(t, version, map[string]string{"values.schema.json": `{"properties": {"size": {"type": "` + kind + `"}}}`})
	}
	add(t, dir, scaffold.Add{Fetched: of("1.0.0", "integer")})
	plan, err := project(dir).Update(scaffold.Update{Kind: "Box", Fetched: *of("2.0.0", "array")})
	if err != nil {
		t.Fatal(err)
	}
	err = plan.Write()
	if err == nil || !strings.Contains(err.Error(), "spec.size: type changed") || !strings.Contains(err.Error(), "--allow-breaking") {
		t.Errorf("got %v, want a refusal with the change and the flag", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "charts", "box", "Chart.yaml")); err != nil || !strings.Contains(string(data), "1.0.0") {
		t.Errorf("the chart was replaced: %v\n%s", err, data)
	}
}

func TestUpdate_KeepsEditedFiles(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	sample := filepath.Join(dir, "config", "samples", "example_v1alpha1_box.yaml")
	add(t, dir, scaffold.Add{Fetched: box(t, "1.0.0", "size: 1\n")})
	rewrite(t, sample, func(text string) string { return text + "# mine\n" })
	rewrite(t, filepath.Join(dir, "charts", "box", "values.yaml"), func(text string) string { return text + "# mine\n" })

	plan, err := project(dir).Update(scaffold.Update{Kind: "Box", Fetched: *box(t, "1.1.0", "size: 2\n")})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Write(); err == nil || !strings.Contains(err.Error(), "values.yaml") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("got %v, want a refusal to overwrite values.yaml", err)
	}
	plan, err = project(dir).Update(scaffold.Update{Kind: "Box", Fetched: *box(t, "1.1.0", "size: 2\n"), Force: true})
	write(t, plan, err)
	if data, err := os.ReadFile(sample); err != nil || !strings.HasSuffix(string(data), "# mine\n") {
		t.Errorf("the edited sample was overwritten: %v\n%s", err, data)
	}
}

func TestAdd_RecordsSource(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	entry := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "watches.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(data), "- group: ")
		return text
	}
	zeros := strings.Repeat("0", 64)
	fetched := box(t, "1.0.0", "size: 1\n")
	fetched.Digest = "sha256:" + zeros
	add(t, dir, scaffold.Add{Fetched: fetched})
	want := "example.com\n  version: v1alpha1\n  kind: Box\n  chart: charts/box\n  source:\n    chart: oci://r.example.com/box\n    version: 1.0.0\n    digest: sha256:" + zeros + "\n"
	if got := entry(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// The copy in charts/ is still from the source.
	add(t, dir, scaffold.Add{Chart: filepath.Join(dir, "charts", "box")})
	if got := entry(); got != want {
		t.Errorf("after add of the copy: got\n%s\nwant\n%s", got, want)
	}
	// Another copy is not.
	other := filepath.Join(t.TempDir(), "box")
	if err := os.CopyFS(other, os.DirFS(filepath.Join(dir, "charts", "box"))); err != nil {
		t.Fatal(err)
	}
	add(t, dir, scaffold.Add{Chart: other})
	if got, want := entry(), "example.com\n  version: v1alpha1\n  kind: Box\n  chart: charts/box\n"; got != want {
		t.Errorf("after add of another folder: got\n%s\nwant\n%s", got, want)
	}
}

func TestAdd_DefaultGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ settings, watches, want string }{
		"domain":                     {"domain: example.org\n", "# domain: example.net\n[]\n", "example.org"},
		"domain of earlier versions": {"", "# domain: example.org\n[]\n", "example.org"},
		"settings of kubebuilder":    {"domain: example.org\nlayout: [helm.sdk.operatorframework.io/v1]\nversion: \"3\"\n", "[]\n", "example.org"},
		"other kinds":                {"", "- {group: shop.example.com, version: v1, kind: A, chart: charts/box}\n", "shop.example.com"},
		"same kind":                  {"domain: example.org\n", "- {group: shop.example.com, version: v1, kind: Box, chart: charts/box}\n", "shop.example.com"},
		"other groups":               {"", "- {group: a.example.com, version: v1, kind: A, chart: charts/box}\n- {group: b.example.com, version: v1, kind: B, chart: charts/box}\n", ""},
		"no kinds":                   {"", "[]\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			add(t, dir, scaffold.Add{Fetched: box(t, "1.0.0", "size: 1\n")})
			rewrite(t, filepath.Join(dir, "watches.yaml"), func(string) string { return test.watches })
			rewrite(t, filepath.Join(dir, "PROJECT"), func(string) string { return test.settings })
			plan, err := project(dir).Add(scaffold.Add{Chart: filepath.Join(dir, "charts", "box")})
			switch {
			case test.want == "" && (err == nil || !strings.Contains(err.Error(), "no API group for the kind Box: set --group")):
				t.Errorf("got %v, want an error about the group", err)
			case test.want != "" && err != nil:
				t.Error(err)
			case test.want != "" && !strings.HasSuffix(plan.Resource, "."+test.want):
				t.Errorf("got %s, want the group %s", plan.Resource, test.want)
			}
		})
	}
}
