package scaffold_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func generate(t *testing.T, dir string) (*scaffold.Plan, map[scaffold.Op][]string) {
	t.Helper()
	plan, err := project(dir).Generate()
	return plan, carryOut(t, plan, err)
}

// TestGenerateForgets: a kind that is taken out of the watches file leaves
// nothing of what is generated.
func TestGenerateForgets(t *testing.T) {
	dir := newProject(t)
	before := tree(t, dir)
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: "shop", Version: "v1"})
	writeFiles(t, dir, map[string]string{"watches.yaml": before["watches.yaml"]})
	plan, _ := generate(t, dir)
	sample := dir + "/config/samples/shop_v1_box.yaml"
	if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, sample+" is of a kind that is no longer served: delete it") {
		t.Errorf("notes: %s", notes)
	}
	if err := os.Remove(sample); err != nil {
		t.Fatal(err)
	}
	plan, _ = generate(t, dir)
	if len(plan.Notes) > 0 {
		t.Errorf("notes: %s", plan.Notes)
	}
	after := tree(t, dir)
	maps.DeleteFunc(after, func(name, _ string) bool { return strings.HasPrefix(name, "charts/box/") })
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestGenerateTellsKindsApart: kinds of one name in two groups get files and
// roles of their own.
func TestGenerateTellsKindsApart(t *testing.T) {
	dir := newProject(t)
	for _, group := range []string{"shop.example.com", "shop.example.org"} {
		add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: group, Version: "v1"})
	}
	// The first had the name for itself when it was added.
	files := tree(t, dir)
	for _, want := range []string{
		"config/crd/bases/shop.example.com_boxes.yaml", "config/crd/bases/shop.example.org_boxes.yaml",
		"config/rbac/boxes.shop.example.com_viewer_role.yaml", "config/rbac/boxes.shop.example.org_viewer_role.yaml",
		"config/samples/shop_v1_box.yaml", "config/samples/shop.example.org_v1_box.yaml",
	} {
		if _, exists := files[want]; !exists {
			t.Errorf("%s is missing", want)
		}
	}
	if _, exists := files["config/rbac/box_viewer_role.yaml"]; exists {
		t.Error("a role of the first kind is left that has the name of both")
	}
	build(t, dir+"/config/default")
	build(t, dir+"/config/samples")
}

// TestGenerateScale: who may change a kind may scale it.
func TestGenerateScale(t *testing.T) {
	dir := newProject(t)
	chart := maps.Clone(boxChart)
	chart["values.schema.json"] = `{"type": "object", "properties": {"size": {"type": "integer"}}}`
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", chart), Group: "shop", Version: "v1"})
	writeFiles(t, dir, map[string]string{"watches.yaml": tree(t, dir)["watches.yaml"] + `  status: {size: size(resources)}
  subresources:
    scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
`})
	generate(t, dir)
	for level, verbs := range map[string]string{"admin": "[get, update, patch]", "editor": "[get, update, patch]", "viewer": "[get]"} {
		role := tree(t, dir)["config/rbac/box_"+level+"_role.yaml"]
		if !strings.HasSuffix(role, "    resources: [boxes/scale]\n    verbs: "+verbs+"\n") {
			t.Errorf("%s may not scale by %s:\n%s", level, verbs, role)
		}
	}
}

// TestGenerateOfThisRepository: its own files are up to date.
func TestGenerateOfThisRepository(t *testing.T) {
	t.Chdir(repository)
	plan, err := scaffold.Project{Watches: "watches.yaml", Config: "config"}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range plan.Stale() {
		t.Errorf("%s: %s", file.Op, file.Path)
	}
	for _, note := range plan.Notes {
		t.Error(note)
	}
}

// TestGenerateKeepsLineEnds: a checkout with the line ends of another system is
// up to date.
func TestGenerateKeepsLineEnds(t *testing.T) {
	dir := newProject(t)
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: "shop", Version: "v1"})
	for name, text := range tree(t, dir) {
		writeFiles(t, dir, map[string]string{name: strings.ReplaceAll(text, "\n", "\r\n")})
	}
	if _, done := generate(t, dir); len(done[scaffold.OpCreate])+len(done[scaffold.OpUpdate])+len(done[scaffold.OpRemove]) > 0 {
		t.Errorf("not up to date: %v", done)
	}
}

func TestGenerateErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		err   string
	}{
		{"a watches file with a problem", map[string]string{"watches.yaml": "- kind: A\n"}, "watches.yaml:1: the entry has no version"},
		{"a kustomization that is none", map[string]string{"config/crd/kustomization.yaml": "resources: a\n"}, "config/crd/kustomization.yaml: line 1: resources is no list"},
		{"a sample that is none", map[string]string{"config/samples/a.yaml": "a: [\n"}, "config/samples/a.yaml: "},
		{"a default that is none", map[string]string{"config/default/kustomization.yaml": "a: [\n"}, "config/default/kustomization.yaml: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newProject(t)
			add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: "shop", Version: "v1"})
			writeFiles(t, dir, test.files)
			if _, err := project(dir).Generate(); err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}
