package scaffold_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// refusals returns the flags that the refusals of a plan name.
func refusals(plan *scaffold.Plan) []string {
	var flags []string
	for _, refusal := range plan.Refusals {
		for _, flag := range []string{"--allow.", "--force", "--replace-chart"} {
			if strings.Contains(refusal.Flags, flag) {
				flags = append(flags, strings.TrimSuffix(flag, "."))
			}
		}
	}
	return flags
}

// expectRefused checks that a request is refused, that nothing is written, and that it is
// written if the flags are set.
func expectRefused(t *testing.T, dir string, request, confirmed scaffold.Add, flags ...string) *scaffold.Plan {
	t.Helper()
	before := tree(t, dir)
	plan, err := project(dir).Add(request)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flags, refusals(plan)); diff != "" {
		t.Fatalf("refused %v (-want +got):\n%s", plan.Refusals, diff)
	}
	err = plan.Write()
	for _, refusal := range plan.Refusals {
		if err == nil || !strings.Contains(err.Error(), refusal.Reason) || !strings.Contains(err.Error(), refusal.Flags) {
			t.Errorf("error %v, want %v in it", err, refusal)
		}
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Fatalf("files have changed:\n%s", diff)
	}
	add(t, dir, confirmed)
	return plan
}

// edit changes a file of a copied chart, or removes it.
type edit struct {
	name, path string
	// text is the new content; an empty one removes the file.
	text string
	// refused is whether an update of the chart is refused.
	refused bool
}

// TestAdd_RefusesToOverwriteEdits updates a chart after an edit of its copy. The new
// version of the chart changes values.yaml, and removes templates/old.yaml and
// files/configuration.ini.
func TestAdd_RefusesToOverwriteEdits(t *testing.T) {
	newer := maps.Clone(boxChart)
	newer["values.yaml"] = "size: 2\n"
	delete(newer, "templates/old.yaml")
	delete(newer, "files/configuration.ini")
	for _, test := range []edit{
		{"no edit", "", "", false},
		{"other line endings", "values.yaml", "size: 1\r\n", false},
		{"a file of the user", "values-mine.yaml", "size: 3\n", false},
		{"the same edit as in the new version", "values.yaml", "size: 2\n", false},
		{"an edit of a file that changes", "values.yaml", "size: 3\n", true},
		{"an edit of a file that does not change", "templates/box.yaml", "# mine\n" + boxChart["templates/box.yaml"], true},
		{"an edit of a file that the new version removes", "files/configuration.ini", "a = c\n", true},
		{"a template of the user", "templates/mine.yaml", "# mine\n", true},
		{"a removed file", "charts/in/.helmignore", "", true},
		{"a removed file that the new version removes", "templates/old.yaml", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			chart := writeFiles(t, filepath.Join(t.TempDir(), "box"), boxChart)
			add(t, dir, scaffold.Add{Chart: chart, Group: "shop", Version: "v1"})
			copied := filepath.Join(dir, "charts", "box")
			switch {
			case test.text != "":
				writeFiles(t, copied, map[string]string{test.path: test.text})
			case test.path != "":
				if err := os.Remove(filepath.Join(copied, test.path)); err != nil {
					t.Fatal(err)
				}
			}
			chart = writeFiles(t, filepath.Join(t.TempDir(), "box"), newer)
			want := maps.Clone(newer)
			if test.refused {
				plan := expectRefused(t, dir, scaffold.Add{Chart: chart}, scaffold.Add{Chart: chart, Force: true}, "--force")
				if got := plan.Refusals[0]; !strings.Contains(got.Reason, test.path) || !strings.Contains(got.Diff, filepath.Join(copied, test.path)) || strings.Count(got.Diff, "\n@@") != 1 {
					t.Errorf("want only %s in the reason %q and in the diff\n%s", test.path, got.Reason, got.Diff)
				}
			} else {
				add(t, dir, scaffold.Add{Chart: chart})
				if test.path == "values-mine.yaml" {
					want[test.path] = test.text
				}
			}
			if diff := cmp.Diff(want, tree(t, copied)); diff != "" {
				t.Errorf("after the update (-want +got):\n%s", diff)
			}
			if again, err := project(dir).Add(scaffold.Add{Chart: chart}); err != nil || len(again.Stale()) > 0 || len(again.Refusals) > 0 {
				t.Errorf("repeated: %v, %v, %v", again.Stale(), again.Refusals, err)
			}
		})
	}
}

// TestAdd_WithoutChecksumsRefusesEveryOverwrite checks copies of earlier versions of
// Chartwright, which wrote no checksums.
func TestAdd_WithoutChecksumsRefusesEveryOverwrite(t *testing.T) {
	dir := newProject(t)
	chart := writeFiles(t, filepath.Join(t.TempDir(), "box"), boxChart)
	add(t, dir, scaffold.Add{Chart: chart, Group: "shop", Version: "v1"})
	sums := filepath.Join(dir, "charts", "checksums.txt")
	if err := os.Remove(sums); err != nil {
		t.Fatal(err)
	}
	add(t, dir, scaffold.Add{Chart: chart})
	if _, err := os.Stat(sums); err != nil {
		t.Errorf("an identical copy does not get checksums: %v", err)
	}
	if err := os.Remove(sums); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, chart, map[string]string{"values.yaml": "size: 2\n"})
	plan := expectRefused(t, dir, scaffold.Add{Chart: chart}, scaffold.Add{Chart: chart, Force: true}, "--force")
	if want := "-size: 1\n+size: 2\n"; !strings.Contains(plan.Refusals[0].Diff, want) {
		t.Errorf("the diff is\n%s", plan.Refusals[0].Diff)
	}
}

func TestAdd_RefusesToReplaceChart(t *testing.T) {
	dir := newProject(t)
	box := writeFiles(t, filepath.Join(t.TempDir(), "box"), boxChart)
	other := maps.Clone(boxChart)
	other["Chart.yaml"] = strings.Replace(other["Chart.yaml"], "box", "crate", 1)
	crate := writeFiles(t, filepath.Join(t.TempDir(), "crate"), other)
	add(t, dir, scaffold.Add{Chart: box, Group: "shop", Version: "v1"})
	request := scaffold.Add{Chart: crate, Kind: "Box"}
	confirmed := request
	confirmed.ReplaceChart = true
	plan := expectRefused(t, dir, request, confirmed, "--replace-chart")
	for _, want := range []string{"Box", "charts/box", "charts/crate"} {
		if !strings.Contains(plan.Refusals[0].Reason, want) {
			t.Errorf("the reason is %q, want %s in it", plan.Refusals[0].Reason, want)
		}
	}
	kinds, err := catalog.FromFile(filepath.Join(dir, "watches.yaml"))
	if err != nil || len(kinds) != 1 || kinds[0].Watch.Chart != "charts/crate" {
		t.Errorf("kinds %v, %v", kinds, err)
	}
	if _, exists := tree(t, dir)["charts/box/Chart.yaml"]; !exists {
		t.Error("the replaced chart was deleted")
	}
}

// TestAdd_Allow adds and updates a chart that needs an allow block.
func TestAdd_Allow(t *testing.T) {
	needed := watches.Allow{OtherNamespaces: true, ClusterScoped: []string{"ClusterRole.rbac.authorization.k8s.io"}, Lookup: watches.LookupAll}
	for _, test := range []struct {
		name, allow string
		flag        *bool
		refused     bool
		want        watches.Allow
		// note is part of a note.
		note string
	}{
		{name: "a new kind", refused: true, want: needed, note: "allows objects outside the namespace"},
		{name: "a new kind with the flag", flag: new(true), want: needed, note: "ClusterRole release (templates/web.yaml, with ci/full-values.yaml)"},
		{name: "a new kind without the permissions", flag: new(false), note: "does not allow everything"},
		{name: "an existing kind", allow: "{}", note: "To allow them, set --allow"},
		{name: "an existing kind with the flag", allow: "{lookup: own, lookupInValues: true}", flag: new(true),
			want: watches.Allow{OtherNamespaces: true, ClusterScoped: needed.ClusterScoped, Lookup: watches.LookupAll, LookupInValues: true}, note: "now also allows"},
		{name: "an existing kind with a block", allow: "\n    clusterScoped:\n      - Namespace\n    lookup: all", flag: new(true),
			want: watches.Allow{OtherNamespaces: true, ClusterScoped: []string{"ClusterRole.rbac.authorization.k8s.io", "Namespace"}, Lookup: watches.LookupAll}},
		{name: "an existing kind with dependencies", allow: "{dependsOn: {annotation: [{apiVersion: a.com/v1, kind: Database}], otherNamespaces: true}}", flag: new(true),
			want: watches.Allow{OtherNamespaces: true, ClusterScoped: needed.ClusterScoped, Lookup: watches.LookupAll, DependsOn: watches.AllowDependsOn{
				Annotation: []watches.DependencyKind{{APIVersion: "a.com/v1", Kind: "Database"}}, OtherNamespaces: true,
			}}},
		{name: "an existing kind without the permissions", allow: "{}", flag: new(false)},
		{name: "an existing kind that allows it", allow: "{otherNamespaces: true, clusterScoped: [ClusterRole.rbac.authorization.k8s.io], lookup: all}", want: needed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			chart := writeFiles(t, filepath.Join(t.TempDir(), "web"), web)
			request := scaffold.Add{Chart: chart, Group: "shop.example.com", Version: "v1", Allow: test.flag}
			if test.allow != "" {
				writeFiles(t, dir, map[string]string{"watches.yaml": "- group: shop.example.com\n  version: v1\n  kind: WebSite\n  allow: " + test.allow + "\n  chart: charts/web-site\n"})
			}
			if test.refused {
				confirmed := request
				confirmed.Allow = new(true)
				expectRefused(t, dir, request, confirmed, "--allow")
				return
			}
			plan := add(t, dir, request)
			kinds, err := catalog.FromFile(filepath.Join(dir, "watches.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, kinds[0].Allow); diff != "" {
				t.Errorf("allow (-want +got):\n%s", diff)
			}
			if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, test.note) {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
		})
	}
}

func TestAdd_AnotherVersionIsServedToo(t *testing.T) {
	for name, test := range map[string]struct {
		versions, version string
		want              []watches.CRDVersion
	}{
		"the first one": {"", "v2", []watches.CRDVersion{{Name: "v2"}, {Name: "v1", Storage: true}}},
		"one more": {"versions: [{name: v1, storage: true}, {name: v1beta1, deprecated: true}]", "v2",
			[]watches.CRDVersion{{Name: "v2"}, {Name: "v1", Storage: true}, {Name: "v1beta1", Deprecated: true}}},
		"a listed one": {"versions:\n    - name: v1\n      storage: true\n    - name: v1beta1\n      deprecated: true", "v1beta1",
			[]watches.CRDVersion{{Name: "v1", Storage: true}, {Name: "v1beta1", Deprecated: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			chart := writeFiles(t, filepath.Join(t.TempDir(), "box"), boxChart)
			entry := "- group: shop.example.com\n  version: v1\n  kind: Box\n  chart: charts/box # the box\n"
			if test.versions != "" {
				entry += "  " + test.versions + "\n"
			}
			writeFiles(t, dir, map[string]string{"watches.yaml": entry})
			add(t, dir, scaffold.Add{Chart: chart, Version: test.version})
			kinds, err := catalog.FromFile(filepath.Join(dir, "watches.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if kinds[0].Version != test.version || !cmp.Equal(test.want, kinds[0].Versions) {
				t.Errorf("version %s of %v, want %s of %v", kinds[0].Version, kinds[0].Versions, test.version, test.want)
			}
			crd := tree(t, dir)["config/crd/bases/shop.example.com_boxes.yaml"]
			for _, v := range test.want {
				if !strings.Contains(crd, "name: "+v.Name+"\n") {
					t.Errorf("the CRD does not contain %s", v.Name)
				}
			}
		})
	}
}

// TestAdd_InProjectOfOperatorSDKUsesHelmCharts checks that charts stay in the folder that
// the Dockerfile of the operator-sdk copies.
func TestAdd_InProjectOfOperatorSDKUsesHelmCharts(t *testing.T) {
	dir := newProject(t)
	if err := os.RemoveAll(filepath.Join(dir, "charts")); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"watches.yaml": "# Use the 'create api' subcommand to add watches to this file.\n" +
		"- group: cache.example.com\n  version: v1\n  kind: Box\n  chart: helm-charts/box\n#+kubebuilder:scaffold:watch\n"})
	writeFiles(t, filepath.Join(dir, "helm-charts", "box"), boxChart)
	before := tree(t, dir)["watches.yaml"]
	add(t, dir, scaffold.Add{Chart: filepath.Join(dir, "helm-charts", "box")})
	if after := tree(t, dir)["watches.yaml"]; after != before {
		t.Errorf("a chart in its place changes watches.yaml to\n%s", after)
	}
	other := maps.Clone(boxChart)
	other["Chart.yaml"] = strings.Replace(other["Chart.yaml"], "box", "crate", 1)
	add(t, dir, scaffold.Add{Chart: writeFiles(t, t.TempDir(), other), Group: "cache.example.com", Version: "v1"})
	add(t, dir, scaffold.Add{New: "sack", Group: "cache.example.com", Version: "v1"})
	// An entry with keys of Chartwright no longer allows everything.
	add(t, dir, scaffold.Add{Chart: filepath.Join(dir, "helm-charts", "box"), ShortNames: []string{"bx"}})
	kinds, err := catalog.FromFile(filepath.Join(dir, "watches.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var charts []string
	for _, kind := range kinds {
		charts = append(charts, kind.Watch.Chart)
		if kind.Allow.Everything {
			t.Errorf("%s allows everything", kind.Kind)
		}
	}
	if want := []string{"helm-charts/box", "helm-charts/crate", "helm-charts/sack"}; !slices.Equal(charts, want) {
		t.Errorf("charts %v, want %v", charts, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "charts")); err == nil {
		t.Error("the folder charts was created")
	}
}

func TestAdd_PluralIsThatOfKubebuilder(t *testing.T) {
	for kind, want := range map[string]struct{ plural, line string }{
		"Redis": {"redis", "  plural: redis\n"}, "Index": {"indices", "  plural: indices\n"}, "Metrics": {"metrics", "  plural: metrics\n"},
		"Policy": {"policies", ""}, "Box": {"boxes", ""}, "Gateway": {"gateways", ""},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			chart := writeFiles(t, filepath.Join(t.TempDir(), "box"), boxChart)
			plan := add(t, dir, scaffold.Add{Chart: chart, Group: "shop", Version: "v1", Kind: kind})
			if plan.Resource != want.plural+".shop.example.com" {
				t.Errorf("resource %s, want plural %s", plan.Resource, want.plural)
			}
			if files := tree(t, dir); !strings.HasSuffix(files["watches.yaml"], "  chart: charts/box\n"+want.line) || files["config/crd/bases/shop.example.com_"+want.plural+".yaml"] == "" {
				t.Errorf("watches.yaml is\n%s", files["watches.yaml"])
			}
			// The plural of an existing kind does not change.
			writeFiles(t, dir, map[string]string{"watches.yaml": "- group: shop.example.com\n  version: v1\n  kind: Redis\n  chart: charts/box\n"})
			if plan := add(t, dir, scaffold.Add{Chart: chart, Kind: "Redis"}); plan.Resource != "redises.shop.example.com" {
				t.Errorf("the plural of an existing kind changes to %s", plan.Resource)
			}
		})
	}
}
