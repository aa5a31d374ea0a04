package sources

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// project runs commands in a folder, without files of the user.
type project struct {
	folder string
	home   string
}

func newProject(t *testing.T) *project {
	t.Helper()
	return &project{folder: t.TempDir(), home: t.TempDir()}
}

// run runs the program, and returns its output and its exit code.
func (p *project) run(t *testing.T, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	binary := os.Getenv("CHARTWRIGHT_BINARY")
	if binary == "" {
		t.Skip("set CHARTWRIGHT_BINARY to the path of bin/chartwright")
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = p.folder
	cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_CACHE_HOME="+p.home+"/cache", "XDG_CONFIG_HOME="+p.home+"/config", "XDG_DATA_HOME="+p.home+"/data", "DOCKER_CONFIG="+p.home+"/docker")
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("$ chartwright %s\n%s%s", strings.Join(args, " "), &out, &errs)
	for _, text := range []string{out.String(), errs.String()} {
		if strings.Contains(text, password) {
			t.Errorf("the output contains the password")
		}
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// succeeds runs the program, and returns its output. It fails the test unless the output
// contains the texts.
func (p *project) succeeds(t *testing.T, args []string, want ...string) string {
	t.Helper()
	stdout, stderr, code := p.run(t, password, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d", args, code)
	}
	expectTexts(t, stdout+stderr, want)
	return stdout + stderr
}

// fails runs the program, which must fail with the texts.
func (p *project) fails(t *testing.T, args []string, want ...string) {
	t.Helper()
	before := p.files(t)
	stdout, stderr, code := p.run(t, password, args...)
	if code == 0 {
		t.Errorf("%q: want a failure", args)
	}
	expectTexts(t, stdout+stderr, want)
	if after := p.files(t); before != after {
		t.Errorf("%q: the failed command has changed files:\n%s\n%s", args, before, after)
	}
}

func expectTexts(t *testing.T, output string, want []string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(output, text) {
			t.Errorf("the output does not contain %q", text)
		}
	}
}

// files returns the paths and digests of all files.
func (p *project) files(t *testing.T) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(p.folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		list.WriteString(path + " " + digest(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

func (p *project) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (p *project) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.folder, name))
	return err == nil
}

// version returns the .tgz of a version of the chart web.
func version(t *testing.T, number, values string, extra ...string) []byte {
	t.Helper()
	c := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "web", Version: number}}
	c.Raw = []*chart.File{{Name: "values.yaml", Data: []byte(values)}}
	c.Templates = []*chart.File{{Name: "templates/deployment.yaml", Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:{{ .Values.tag }}"}]}
`)}}
	for _, kind := range extra {
		c.Templates = append(c.Templates, &chart.File{Name: "templates/" + strings.ToLower(kind) + ".yaml", Data: []byte("apiVersion: v1\nkind: " + kind + "\nmetadata: {name: {{ .Release.Name }}}\n")})
	}
	folder := t.TempDir()
	var err error
	if c.Values, err = chartutil.ReadValues([]byte(values)); err != nil {
		t.Fatal(err)
	}
	written, err := chartutil.Save(c, folder)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCommands_FromInitToRemove is the life of a kind whose chart is in a private registry.
func TestCommands_FromInitToRemove(t *testing.T) {
	t.Parallel()
	charts := [][]byte{
		version(t, "1.0.0", "replicas: 1\ntag: v1\n"),
		version(t, "1.1.0", "replicas: 2\ntag: v2\nlogs:\n  level: info\n", "ConfigMap"),
		version(t, "2.0.0", "replicas: 2\ntag: [v2]\n"),
	}
	registry, manifests := startRegistry(t, true, charts...)
	registry.private = true
	p := newProject(t)
	ca := filepath.Join(p.home, "ca.crt")
	if err := os.WriteFile(ca, registry.ca, 0o600); err != nil {
		t.Fatal(err)
	}
	oci := "oci://" + registry.host + "/charts/web"
	login := []string{"--ca-file", ca, "--username", username, "--password-stdin"}
	with := func(args ...string) []string { return append(args, login...) }

	p.fails(t, []string{"init", "shop", "--domain", "example.com", "--chart", oci, "--ca-file", ca}, "requires credentials (401): set --username and --password-stdin", "helm registry login "+registry.host)
	p.fails(t, with("init", "shop", "--domain", "example.com", "--chart", oci, "--chart-version", "3"), "no version matches 3 (newest: 2.0.0, 1.1.0, 1.0.0)")
	p.succeeds(t, with("init", "shop", "--domain", "example.com", "--chart", oci, "--chart-version", "1.0.0"),
		"created   shop/Makefile", "created   shop/charts/web/Chart.yaml", "created   shop/config/crd/bases/example.com_webs.yaml")

	p.folder = filepath.Join(p.folder, "shop")
	entry := "- group: example.com\n  version: v1alpha1\n  kind: Web\n  chart: charts/web\n  source:\n    chart: " + oci + "\n    version: 1.0.0\n    digest: " + manifests[0] + "\n"
	if got := p.read(t, "watches.yaml"); !strings.HasSuffix(got, entry) {
		t.Errorf("watches.yaml:\n%s\nwant at the end\n%s", got, entry)
	}
	p.succeeds(t, []string{"generate", "--check", "--strict"})
	p.succeeds(t, []string{"lint"})

	before := p.files(t)
	dry := p.succeeds(t, with("update", "Web", "--chart-version", "^1", "--dry-run"),
		"chart 1.0.0 -> 1.1.0", "CRD webs.example.com: 0 breaking changes", "PropertyAdded", "spec.logs",
		`+ logs.level: "info"`, "~ replicas: 1 -> 2", `~ tag: "v1" -> "v2"`, `resources: ["configmaps"]`, "+ nginx:v2", "- nginx:v1", "update    watches.yaml")
	if p.files(t) != before {
		t.Error("--dry-run has changed files")
	}
	if strings.Contains(dry, "BREAKING") {
		t.Error("the compatible version has breaking changes")
	}
	p.succeeds(t, with("update", "Web", "--chart-version", "^1"), "created   charts/web/templates/configmap.yaml", "updated   watches.yaml")
	if got := p.read(t, "watches.yaml"); !strings.Contains(got, "1.1.0") || !strings.Contains(got, manifests[1]) || strings.Contains(got, manifests[0]) {
		t.Errorf("watches.yaml after the update:\n%s", got)
	}
	p.succeeds(t, with("update", "Web", "--chart-version", "^1"), "Web is up to date: chart version 1.1.0")
	p.succeeds(t, []string{"generate", "--check", "--strict"})

	p.fails(t, with("update", "Web"), "chart 1.1.0 -> 2.0.0", "BREAKING", "spec.logs", "--allow-breaking")
	p.succeeds(t, with("update", "Web", "--allow-breaking"), "chart 1.1.0 -> 2.0.0")
	p.succeeds(t, []string{"generate", "--check", "--strict"})

	p.fails(t, []string{"remove", "Nope"}, "has no kind Nope: want one of Web")
	before = p.files(t)
	p.succeeds(t, []string{"remove", "Web", "--dry-run"}, "remove    charts/web/Chart.yaml", "remove    config/crd/bases/example.com_webs.yaml")
	if p.files(t) != before {
		t.Error("--dry-run has changed files")
	}
	p.succeeds(t, []string{"remove", "Web"}, "kubectl delete webs.example.com --all --all-namespaces", "kubectl delete crd webs.example.com", "removed   charts/web/Chart.yaml")
	if p.exists("charts/web") || p.exists("config/crd/bases/example.com_webs.yaml") || p.exists("config/rbac/web_editor_role.yaml") || p.exists("config/samples/example_v1alpha1_web.yaml") {
		t.Errorf("files of the kind are left:\n%s", p.files(t))
	}
	p.succeeds(t, []string{"generate", "--check", "--strict"})
	p.succeeds(t, with("add", oci+":1.0.0"), "created   charts/web/Chart.yaml")
}

// TestCommands_EveryForm adds a kind by every form of reference.
func TestCommands_EveryForm(t *testing.T) {
	t.Parallel()
	data := version(t, "1.0.0", "replicas: 1\ntag: v1\n")
	registry, manifests := startRegistry(t, false, data)
	repository := startRepository(t, data)
	p := newProject(t)
	archive := filepath.Join(p.home, "web-1.0.0.tgz")
	ca := filepath.Join(p.home, "ca.crt")
	for name, content := range map[string][]byte{archive: data, ca: repository.ca} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(p.home, "config", "helm"), 0o700); err != nil {
		t.Fatal(err)
	}
	helm := "apiVersion: v1\nrepositories: [{name: shop, url: " + repository.URL + "/stable, caFile: " + ca + "}]\n"
	if err := os.WriteFile(filepath.Join(p.home, "config", "helm", "repositories.yaml"), []byte(helm), 0o600); err != nil {
		t.Fatal(err)
	}
	oci, stable := "oci://"+registry.host+"/charts/web", repository.URL+"/stable"
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"folder":          {[]string{filepath.Dir(unpacked(t, data))}, ""},
		"archive":         {[]string{archive, "--chart-version", "1.0.0"}, ""},
		"url":             {[]string{stable + "/web-1.0.0.tgz", "--ca-file", ca}, "    chart: " + stable + "/web-1.0.0.tgz\n    version: 1.0.0\n    digest: " + digest(data) + "\n"},
		"url-query":       {[]string{stable + "/web-1.0.0.tgz?X-Signature=secret", "--ca-file", ca}, "    chart: " + stable + "/web-1.0.0.tgz\n    version: 1.0.0\n    digest: " + digest(data) + "\n"},
		"oci":             {[]string{oci, "--plain-http"}, "    chart: " + oci + "\n    version: 1.0.0\n    digest: " + manifests[0] + "\n"},
		"oci-tag":         {[]string{oci + ":1.0.0", "--plain-http"}, "    chart: " + oci + "\n    version: 1.0.0\n    digest: " + manifests[0] + "\n"},
		"oci-digest":      {[]string{oci + "@" + manifests[0], "--plain-http"}, "    chart: " + oci + "\n    version: 1.0.0\n    digest: " + manifests[0] + "\n"},
		"repository-name": {[]string{"shop/web"}, "    chart: web\n    repo: " + stable + "\n    version: 1.0.0\n    digest: " + digest(data) + "\n"},
		"repository-url":  {[]string{"web", "--repo", stable, "--ca-file", ca, "--chart-version", "~1.0"}, "    chart: web\n    repo: " + stable + "\n    version: 1.0.0\n    digest: " + digest(data) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := &project{folder: p.folder, home: p.home}
			in.succeeds(t, []string{"init", name})
			in.folder = filepath.Join(p.folder, name)
			in.fails(t, append([]string{"add"}, test.args...), "no API group for the kind Web: set --group")
			in.succeeds(t, append([]string{"add", "--group", "shop.example.com"}, test.args...), "resource: webs.shop.example.com")
			_, entry, _ := strings.Cut(in.read(t, "watches.yaml"), "  chart: charts/web\n")
			if source := strings.TrimPrefix(entry, "  source:\n"); source != test.want {
				t.Errorf("watches.yaml ends with\n%s\nwant\n%s", entry, test.want)
			}
			if test.want == "" {
				in.fails(t, []string{"update", "Web"}, "the entry of Web has no source: to update the chart, run 'chartwright add CHART --kind Web'")
				return
			}
			in.succeeds(t, append([]string{"update", "Web"}, flagsOf(test.args)...), "Web is up to date: chart version 1.0.0")
		})
	}
	p.fails(t, []string{"init", "other", "--chart", "nowhere/web"}, `has no repository "nowhere" (only shop)`, "helm repo add nowhere URL")
	p.fails(t, []string{"init", "other", "--chart", "./nowhere"}, "not found: want a folder, a .tgz, https://HOST/PATH.tgz")
	p.fails(t, []string{"init", "other", "--chart", "oci://" + closedPort(t) + "/web"}, "connection refused", "check the network and the proxy")
	p.succeeds(t, []string{"init", "other", "--chart", oci, "--plain-http"}, "the API group is other.example.com, because there is no --domain")
}

// flagsOf returns the flags of a connection.
func flagsOf(args []string) []string {
	for i, arg := range args {
		switch arg {
		case "--plain-http":
			return []string{arg}
		case "--ca-file":
			return args[i : i+2]
		}
	}
	return nil
}

// TestTry_FromRegistry: no project is needed to see a chart of a registry on a cluster.
func TestTry_FromRegistry(t *testing.T) {
	t.Parallel()
	registry, _ := startRegistry(t, true, version(t, "1.0.0", "replicas: 1\ntag: v1\n"))
	p := newProject(t)
	ca := filepath.Join(p.home, "ca.crt")
	if err := os.WriteFile(ca, registry.ca, 0o600); err != nil {
		t.Fatal(err)
	}
	p.succeeds(t, []string{"try", "oci://" + registry.host + "/charts/web", "--ca-file", ca, "--exit"},
		"Chart web-1.0.0 becomes the kind Web", "Web default/web-sample", "Deployment web-sample", "Ready after")
}
