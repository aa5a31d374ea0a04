package scaffold_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/testenv"
)

// repository is the path of the root of this repository.
const repository = "../../.."

// folders are the folders in config that kustomize builds.
var folders = []string{"crd", "rbac", "manager", "default", "samples", "prometheus", "network-policy", "approval-policy", "namespaced", "scorecard", "manifests"}

// newProject creates a project named shop and returns its folder.
func newProject(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	plan, err := scaffold.Init{Dir: dir, Domain: "example.com", Version: "v1.2.3", Image: "ghcr.io/chartwright/chartwright:v1.2.3"}.Plan()
	write(t, plan, err)
	return dir
}

func project(dir string) scaffold.Project {
	return scaffold.Project{Watches: filepath.Join(dir, "watches.yaml"), Config: filepath.Join(dir, "config")}
}

// write writes a plan and returns its files by operation.
func write(t *testing.T, plan *scaffold.Plan, err error) map[scaffold.Op][]string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Write(); err != nil {
		t.Fatal(err)
	}
	files := map[scaffold.Op][]string{}
	for _, file := range plan.Files() {
		files[file.Op] = append(files[file.Op], file.Path)
	}
	return files
}

// add adds a kind to a project.
func add(t *testing.T, dir string, a scaffold.Add) *scaffold.Plan {
	t.Helper()
	plan, err := project(dir).Add(a)
	write(t, plan, err)
	return plan
}

// web is a chart with defaults, a required value, and objects that need an allow block.
var web = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: web-site\nversion: 1.0.0\n",
	"values.yaml": `# Number of pods.
replicas: 1

# The host name. Required.
# host: ""

image:
  # Registry and name.
  repository: nginx
extra: {}
`,
	"values.schema.json": `{"type": "object", "required": ["host", "replicas"], "properties": {
		"host": {"type": "string", "minLength": 3}, "replicas": {"type": "integer", "minimum": 1},
		"image": {"type": "object"}, "extra": {"type": "object"}}}`,
	"ci/full-values.yaml": "host: web.example.com\nextra: {role: true}\n",
	"templates/web.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  host: {{ required "a host" .Values.host }}
  node: {{ (lookup "v1" "Node" "" "a").kind | quote }}
  own: {{ (lookup "v1" "Secret" .Release.Namespace "a").kind | quote }}
{{- if .Values.extra.role }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Name }}
rules: []
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  namespace: kube-public
{{- end }}
`,
}

// writeFiles writes files into a folder and returns the folder.
func writeFiles(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree returns the files of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// derived matches files whose content other tests check.
var derived = regexp.MustCompile(`^config/crd/bases/|^config/(rbac|namespaced)/role\.yaml$|^charts/`)

// golden compares a tree with a file of testdata.
func golden(t *testing.T, name string, files map[string]string) {
	t.Helper()
	var text strings.Builder
	for _, file := range sorted(files) {
		text.WriteString("-- " + file + " --\n")
		if derived.MatchString(file) {
			text.WriteString("…\n")
		} else {
			text.WriteString(files[file])
		}
	}
	path := filepath.Join("testdata", name+".golden")
	if testenv.Update() {
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s differs; to update it, run go test ./internal/authoring/scaffold -update (-want +got):\n%s", path, diff)
	}
}

// build returns the output of kustomize for a folder.
func build(t *testing.T, folder string) string {
	t.Helper()
	kubectl, err := filepath.Abs(filepath.Join(repository, "bin", "kube", "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubectl); err != nil {
		t.Skip("no kubectl: run 'make cluster-binaries'")
	}
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", folder).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v", folder, err)
	}
	return string(out)
}
