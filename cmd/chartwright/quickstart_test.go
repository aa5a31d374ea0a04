package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// coreutils are the other programs that "make verify" and "make test" of a project use.
const coreutils = "sh make cat diff echo ls mkdir"

// terminal runs shell commands that find chartwright, kubectl and a few programs of every
// system, but neither Go nor Helm nor a cluster.
type terminal struct {
	t   *testing.T
	env []string
	dir string
}

func newTerminal(t *testing.T, programs string) *terminal {
	t.Helper()
	bin, home := t.TempDir(), t.TempDir()
	kubectl, err := filepath.Abs("../../bin/kube/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubectl); err != nil {
		t.Skip("no kubectl: run 'make cluster-binaries'")
	}
	paths := map[string]string{"kubectl": kubectl}
	for name := range strings.FieldsSeq(programs) {
		if paths[name], err = exec.LookPath(name); err != nil {
			t.Skipf("this system has no %s", name)
		}
	}
	env := []string{"PATH=" + bin, "HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none")}
	if paths["chartwright"] = os.Getenv("CHARTWRIGHT_BINARY"); paths["chartwright"] == "" {
		if paths["chartwright"], err = os.Executable(); err != nil {
			t.Fatal(err)
		}
		env = append(env, asMain+"=1")
	}
	for name, path := range paths {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return &terminal{t: t, env: env, dir: home}
}

// run runs commands in the folder where the previous commands ended, and returns their
// output.
func (a *terminal) run(commands string) (string, error) {
	a.t.Helper()
	place := filepath.Join(a.dir, ".pwd")
	cmd := exec.CommandContext(context.WithoutCancel(a.t.Context()), "sh", "-c", "set -e\n"+commands+"\npwd >'"+place+"'")
	cmd.Env, cmd.Dir = a.env, a.dir
	if to, err := os.ReadFile(place); err == nil {
		cmd.Dir = strings.TrimSpace(string(to))
	}
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}

// expect runs commands that succeed or fail with an output that contains all texts.
func (a *terminal) expect(succeeds bool, commands string, texts ...string) {
	a.t.Helper()
	printed, err := a.run(commands)
	if (err == nil) != succeeds {
		a.t.Fatalf("%s: %v\n%s", commands, err, printed)
	}
	// A shell continues if a command in a list is missing.
	if succeeds && (strings.Contains(printed, "not found") || strings.Contains(printed, "No such file")) {
		a.t.Errorf("%s: a program is missing:\n%s", commands, printed)
	}
	for _, text := range texts {
		if !strings.Contains(printed, text) {
			a.t.Errorf("%s: no %q in\n%s", commands, text, printed)
		}
	}
}

// write writes a file of the project shop.
func (a *terminal) write(path, text string) {
	a.t.Helper()
	file := filepath.Join(a.dir, "shop", path)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func TestMakefile_NeedsOnlyBinaryAndKubectl(t *testing.T) {
	t.Parallel()
	a := newTerminal(t, coreutils)
	a.expect(false, "command -v go helm docker kind git awk sed grep find")
	a.expect(true, "mkdir shop; cd shop; chartwright init --domain example.com", "Next:\n  chartwright add CHART ")
	for _, target := range []string{"install", "run", "samples", "helm-test", "kind"} {
		a.expect(false, "make "+target, `the project has no kinds yet: add one, for example with "chartwright add --new web"`)
	}
	a.expect(true, "make verify test", "no kinds, so there are no samples to test")

	a.expect(true, "chartwright add --new web", "resource: webs.example.com\n", "Next:\n  make verify ")
	a.expect(true, "make verify test", "test/rendered.yaml: written, commit it")
	a.expect(true, "make test", "test/rendered.yaml: unchanged")

	const changed = "the samples render other objects than test/rendered.yaml: to accept the changes, run \"make test UPDATE=1\""
	a.write("charts/web/templates/page.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-page\"}\n")
	a.expect(false, "make verify", "config/rbac/role.yaml: outdated")
	a.expect(false, "make test", "+kind: ConfigMap\n", changed)
	a.expect(true, "make test UPDATE=1", "test/rendered.yaml: written, commit it")
	a.expect(true, "make test", "test/rendered.yaml: unchanged")

	a.write("test/rendered.yaml", "")
	a.expect(false, "CI=true make test", changed)
	if err := os.Remove(filepath.Join(a.dir, "shop", "test", "rendered.yaml")); err != nil {
		t.Fatal(err)
	}
	a.expect(false, "CI=true make test", `test/rendered.yaml is missing: run "make test", and commit the file`)
}

func TestMakefile_ChecksRefusals(t *testing.T) {
	t.Parallel()
	a := newTerminal(t, coreutils)
	a.expect(true, "chartwright init shop --domain example.com; cd shop; chartwright add --new web")
	const web = "apiVersion: example.com/v1alpha1\nkind: Web\nmetadata: {name: invalid}\nspec: "
	for _, test := range []struct {
		name, text, want string
		succeeds         bool
	}{
		{"refused", "# refused: should be greater than or equal to 0\n" + web + "{replicas: -1}\n", "test/invalid/web.yaml: refused", true},
		{"valid", "# refused: should be greater than or equal to 0\n" + web + "{replicas: 1}\n", "test/invalid/web.yaml: not refused, want the error: should be greater than or equal to 0", false},
		{"refused for another reason", "# refused: should be greater than or equal to 0\n" + web + "{replicas: many}\n", "test/invalid/web.yaml: want the error: should be greater than or equal to 0\ngot: ", false},
		{"unknown kind", "# refused: replicas\n" + strings.Replace(web, "Web", "Net", 1) + "{}\n", "test/invalid/web.yaml: want the error: replicas\ngot: ", false},
	} {
		a.write("test/invalid/web.yaml", test.text)
		a.expect(test.succeeds, "make test-refusals", test.want)
	}
}

// TestMakefile_BuildsImages checks commands that cannot run without Docker, kind or a
// cluster.
func TestMakefile_BuildsImages(t *testing.T) {
	t.Parallel()
	a := newTerminal(t, coreutils+" date")
	a.expect(true, "chartwright init shop --domain example.com; cd shop; chartwright add --new web")
	a.expect(true, "make --dry-run docker-build", "docker build --tag shop:latest .\n")
	a.expect(true, "make --dry-run docker-build BASE_IMAGE=r/c:v1", "docker build --build-arg CHARTWRIGHT=r/c:v1 --tag shop:latest .\n")
	a.expect(true, "make --dry-run docker-buildx IMG=r/shop:v1", "docker buildx build --builder shop --platform linux/amd64,linux/arm64 --push --tag r/shop:v1 .\n")
	a.expect(true, "make --dry-run run", "kubectl create token --namespace shop-system --duration 24h shop-controller-manager", "exec chartwright run --operator-name shop")

	printed, err := a.run("make --dry-run kind KIND_CLUSTER=local")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	steps := regexp.MustCompile(`(?s)docker build --tag (shop:kind-\d+) \.\n` +
		`.*kind create cluster --name local\n` +
		`kind load docker-image --name local (shop:kind-\d+)\n` +
		`.*kubectl --context kind-local apply --server-side --force-conflicts -k .deploy\n` +
		`.*kubectl --context kind-local apply -k config/samples\n` +
		`.*kubectl --context kind-local wait --for=condition=Ready`).FindStringSubmatch(printed)
	if len(steps) != 3 || steps[1] != steps[2] {
		t.Errorf("make kind runs %q\n%s", steps, printed)
	}
}

// TestQuickstart runs the commands of docs/get-started/quickstart.md that need no cluster. The others
// must exist in the project: targets of make, and the kind of kubectl's commands.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/get-started/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(page), "\n"); lines > 40 {
		t.Errorf("the page has %d lines, want at most 40", lines)
	}
	a := newTerminal(t, coreutils+" date")
	ran, checked := 0, 0
	for _, block := range regexp.MustCompile("(?s)```(sh[a-z ]*)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		switch block[1] {
		case "sh":
			a.expect(true, block[2])
			ran++
		case "sh cluster":
			for command := range strings.SplitSeq(strings.TrimSpace(block[2]), "\n") {
				a.checkCommand(command)
				checked++
			}
		}
	}
	if ran == 0 || checked < 5 {
		t.Errorf("%d blocks ran, %d commands were checked", ran, checked)
	}
}

// checkCommand checks a command that needs a cluster.
func (a *terminal) checkCommand(command string) {
	a.t.Helper()
	words := strings.Fields(command)
	switch words[0] {
	case "make":
		a.expect(true, "make --dry-run "+strings.Join(words[1:], " "))
	case "kubectl":
		definition, err := os.ReadFile(filepath.Join(a.dir, "shop", "config", "crd", "bases", "example.com_webs.yaml"))
		if err != nil {
			a.t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^ +(plural|singular): ` + words[2] + `$`).Match(definition) {
			a.t.Errorf("%s: the project has no resource %s", command, words[2])
		}
		sample, err := a.run("cat config/samples/example_v1alpha1_web.yaml")
		if err != nil || len(words) > 3 && !strings.Contains(sample, "name: "+words[3]+"\n") {
			a.t.Errorf("%s: the sample has another name: %v\n%s", command, err, sample)
		}
		if _, patch, found := strings.Cut(command, "--patch '"); found {
			spec := strings.TrimSuffix(strings.TrimPrefix(patch, "{"), "}'")
			a.expect(true, `printf '{"apiVersion": "example.com/v1alpha1", "kind": "Web", "metadata": {"name": "web-sample"}, %s}' '`+spec+`' | chartwright render --validate -f -`, "replicas: 3")
		}
	case "minikube":
	default:
		a.t.Errorf("no check for %q", command)
	}
}
