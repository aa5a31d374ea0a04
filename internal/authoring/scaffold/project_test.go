package scaffold_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func sorted(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

func TestInit_WritesProject(t *testing.T) {
	dir := newProject(t)
	files := tree(t, dir)
	golden(t, "init", files)
	for name := range files {
		if strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "go.") {
			t.Errorf("unexpected Go file %s", name)
		}
	}
	for _, folder := range folders {
		build(t, filepath.Join(dir, "config", folder))
	}
	plan, err := project(dir).Generate()
	if done := write(t, plan, err); len(done[scaffold.OpCreate])+len(done[scaffold.OpUpdate])+len(done[scaffold.OpRemove]) > 0 {
		t.Errorf("a new project is not up to date: %v", done)
	}
}

// TestInit_ConfigEqualsThisRepository checks that config/ of a new project and of this
// repository only differ in names.
func TestInit_ConfigEqualsThisRepository(t *testing.T) {
	dir := newProject(t)
	config := filepath.Join(repository, "config")
	for name, got := range tree(t, filepath.Join(dir, "config")) {
		// These depend on the kinds and the project.
		if strings.HasSuffix(name, "/role.yaml") || name == "manifests/bases/clusterserviceversion.yaml" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(config, name))
		if err != nil {
			t.Errorf("%v: remove it from internal/authoring/scaffold/files, too", err)
			continue
		}
		wanted := string(want)
		got, wanted = withoutKinds(name, got), withoutKinds(name, wanted)
		if diff := cmp.Diff(wanted, strings.ReplaceAll(got, "shop", "chartwright")); diff != "" {
			t.Errorf("config/%s differs from internal/authoring/scaffold/files/project/config/%[1]s: change both (-repository +project):\n%[2]s", name, diff)
		}
	}
	// The dashboards are the same for every operator.
	for name := range tree(t, config) {
		if _, exists := tree(t, filepath.Join(dir, "config"))[name]; !exists && !ofKinds(name) && !strings.HasPrefix(name, "grafana/") {
			t.Errorf("config/%s has no counterpart in internal/authoring/scaffold/files/project", name)
		}
	}
}

// ofKinds reports whether a file belongs to a kind.
func ofKinds(name string) bool {
	return strings.HasPrefix(name, "crd/bases/") || strings.HasPrefix(name, "samples/") || strings.HasSuffix(name, "_role.yaml")
}

// listsKinds matches the lines of a kustomization that list files of kinds.
var listsKinds = map[string]*regexp.Regexp{
	"crd/kustomization.yaml":     regexp.MustCompile(`- bases/`),
	"samples/kustomization.yaml": regexp.MustCompile(`\.yaml$`),
	"rbac/kustomization.yaml":    regexp.MustCompile(`_(admin|editor|viewer)_role\.yaml$`),
}

func withoutKinds(name, text string) string {
	lists := listsKinds[name]
	if lists == nil {
		return text
	}
	var lines []string
	for line := range strings.Lines(text) {
		if !lists.MatchString(strings.TrimSpace(line)) {
			lines = append(lines, strings.Replace(line, "resources: []", "resources:", 1))
		}
	}
	return strings.Join(lines, "")
}

func TestInit_RejectsInvalidRequest(t *testing.T) {
	for _, test := range []struct {
		name  string
		init  scaffold.Init
		files map[string]string
		err   string
	}{
		{"an existing file", scaffold.Init{}, map[string]string{"Makefile": "mine", "config/rbac/role.yaml": "mine"}, "Makefile, "},
		{"many existing files", scaffold.Init{}, map[string]string{"Makefile": "", "Dockerfile": "", "README.md": "", "watches.yaml": "", ".gitignore": ""}, "Makefile and 2 more: choose another folder"},
		{"an invalid image", scaffold.Init{Name: "shop", Image: "foo bar:latest"}, nil, `--image "foo bar:latest": want the name of an image, such as registry.example.com/chartwright:v1`},
		{"an invalid name", scaffold.Init{Name: "Shop"}, nil, `"Shop": want at most 27 lower-case letters`},
		{"a name that is too long", scaffold.Init{Name: strings.Repeat("a", 28)}, nil, "want at most 27"},
		{"an invalid domain", scaffold.Init{Name: "shop", Domain: "https://example.com"}, nil, "--domain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a shop")
			writeFiles(t, dir, test.files)
			test.init.Dir = dir
			_, err := test.init.Plan()
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(len(test.files), len(treeOrNone(t, dir))); diff != "" {
				t.Errorf("files were written: %s", diff)
			}
		})
	}
}

func treeOrNone(t *testing.T, dir string) map[string]string {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	return tree(t, dir)
}

// TestInit_PreservesOtherFiles also checks that the name of the folder is converted into a
// valid name of the operator.
func TestInit_PreservesOtherFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "My_Shop 2")
	writeFiles(t, dir, map[string]string{".git/HEAD": "main", "charts/web/Chart.yaml": "mine"})
	plan, err := scaffold.Init{Dir: dir, Image: "chartwright:v1"}.Plan()
	write(t, plan, err)
	files := tree(t, dir)
	if files[".git/HEAD"] != "main" || files["charts/web/Chart.yaml"] != "mine" {
		t.Error("other files have changed")
	}
	if !strings.Contains(files["config/default/kustomization.yaml"], "namePrefix: my-shop-2-\n") {
		t.Errorf("the name prefix is missing in\n%s", files["config/default/kustomization.yaml"])
	}
	if strings.Contains(files["PROJECT"], "domain:") {
		t.Errorf("unexpected domain in\n%s", files["PROJECT"])
	}
}

// TestBundle_PlansFiles does not check the content of the bundle, which the package bundle
// does.
func TestBundle_PlansFiles(t *testing.T) {
	dir := newProject(t)
	add(t, dir, scaffold.Add{New: "web", Group: "shop", Version: "v1alpha1"})
	folder := filepath.Join(dir, "olm", "bundle")
	options := bundle.Options{Version: "1.2.3", Image: "shop:v1.2.3", Channels: []string{"stable"}}
	plan, err := project(dir).Bundle(t.Context(), folder, options)
	done := write(t, plan, err)
	for _, file := range []string{
		"bundle.Dockerfile", "bundle/manifests/shop.clusterserviceversion.yaml", "bundle/manifests/shop.example.com_webs.yaml",
		"bundle/manifests/shop-web-viewer-role_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"bundle/metadata/annotations.yaml", "bundle/tests/scorecard/config.yaml",
	} {
		if !slices.Contains(done[scaffold.OpCreate], filepath.Join(dir, "olm", file)) {
			t.Errorf("missing %s in\n%s", file, strings.Join(done[scaffold.OpCreate], "\n"))
		}
	}
	if !plan.Unsettled || len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "spec.maintainers") {
		t.Errorf("notes: %q", plan.Notes)
	}

	plan, err = project(dir).Bundle(t.Context(), folder, options)
	write(t, plan, err)
	if len(plan.Stale()) > 0 {
		t.Errorf("the second run writes %v", plan.Stale())
	}

	// Files of removed kinds are removed from the bundle, and files of users are preserved.
	own, taken := filepath.Join(folder, "manifests", "own.yaml"), filepath.Join(dir, "olm", "bundle.Dockerfile")
	old := filepath.Join(folder, "manifests", "shop.example.com_olds.yaml")
	for path, data := range map[string]string{own: "kind: ConfigMap\n", taken: "FROM scratch\n", old: "# Generated by \"chartwright bundle\"\nold\n"} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options.Version = "1.2.4"
	plan, err = project(dir).Bundle(t.Context(), folder, options)
	done = write(t, plan, err)
	if !slices.Equal(done[scaffold.OpRemove], []string{old}) {
		t.Errorf("removed: %v", done[scaffold.OpRemove])
	}
	if want := []string{filepath.Join(folder, "manifests", "shop.clusterserviceversion.yaml")}; !slices.Equal(done[scaffold.OpUpdate], want) {
		t.Errorf("updated: %v", done[scaffold.OpUpdate])
	}
	for path, want := range map[string]string{own: "kind: ConfigMap\n", taken: "FROM scratch\n"} {
		if data, err := os.ReadFile(path); err != nil || string(data) != want {
			t.Errorf("%s is now %q, %v", path, data, err)
		}
	}
}
