package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/watches"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestChartAuthors follows docs/get-started/your-own-chart.md like a new user: in an empty
// folder, without Go, and only with the page's commands. Blocks of
//
//	sh           are run and must succeed
//	sh refused   are run and must fail
//	sh operator  are run in another terminal, in place of the previous such block
//	text         are part of the previous block's output; any white space
//	             separates words, and * matches any word
//	yaml         are part of a watches entry
//
// The operator has a token of the account that the project deploys, with exactly
// the generated permissions.
func TestChartAuthors(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	// The chart from helm create runs its containers as root.
	env.Kubectl("label", "namespace", env.Namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	author := &author{env: env, home: t.TempDir(), kubeconfig: env.AdminKubeconfig()}
	author.path = author.programs(t)
	if printed, err := author.run("command -v go"); err == nil {
		t.Fatalf("Go is installed: %s", printed)
	}
	// While the operator runs: the cleanup needs it.
	defer author.cleanUp()
	audit := env.Audit(author.account().User())

	data, err := os.ReadFile(harness.Root("docs", "get-started", "your-own-chart.md"))
	if err != nil {
		t.Fatal(err)
	}
	var printed string
	blocks := fenced(string(data))
	if len(blocks) < 20 {
		t.Fatalf("found only %d blocks", len(blocks))
	}
	for _, block := range blocks {
		switch block.kind {
		case "sh", "sh refused":
			if block.kind == "sh refused" && strings.HasPrefix(block.text, "kubectl") {
				author.waitRefused(block.text)
			}
			printed, err = author.run(block.text)
			if (err != nil) != (block.kind == "sh refused") {
				t.Fatalf("line %d: %v\n%s\n%s", block.line, err, block.text, printed)
			}
		case "sh operator":
			author.runOperator(block.text)
		case "text":
			expectOutput(t, block, printed)
		case "yaml":
			// Part of an entry in watches.yaml for a chart that is not in this
			// repository.
			if err := yaml.UnmarshalStrict([]byte(block.text), &watches.Watch{}); err != nil {
				t.Errorf("line %d: not part of a watches entry: %v", block.line, err)
			}
		default:
			t.Errorf("line %d: no test for blocks of %q", block.line, block.kind)
		}
	}
	if !strings.Contains(string(data), "\nmake deploy ") {
		t.Fatal("the page does not deploy the operator")
	}
	if printed, err := author.run("make run"); err == nil || !strings.Contains(printed, "the operator is already deployed in this cluster") {
		t.Errorf("make run next to the deployed operator: %v\n%s", err, printed)
	}
	// All requests came from this account, not from an admin.
	requests := audit.Requests()
	if len(requests) == 0 {
		t.Error("the operator's account made no requests")
	}
	for _, request := range requests {
		if request.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("refused: %v: %s", request, request.ResponseStatus.Message)
		}
	}
}

// block is a fenced block of a page.
type block struct {
	line       int
	kind, text string
}

func fenced(page string) []block {
	var blocks []block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 1, kind: kind}
		case fence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return blocks
}

// expectOutput checks that the lines of a block appear in the output, in the
// same order.
func expectOutput(t *testing.T, b block, printed string) {
	t.Helper()
	rest := strings.Join(strings.Fields(printed), " ")
	for line := range strings.Lines(b.text) {
		words := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
		found := regexp.MustCompile(strings.ReplaceAll(words, `\*`, `.+?`)).FindStringIndex(rest)
		if found == nil {
			t.Errorf("line %d: missing in the output: %q:\n%s", b.line, strings.TrimSpace(line), printed)
			return
		}
		rest = rest[found[1]:]
	}
}

// author is a user at a terminal.
type author struct {
	env *harness.Env
	// home is the initial folder; path is $PATH.
	home, path, kubeconfig string
	end                    func()
}

// programs creates a folder with the programs that the page uses and those of
// every system.
func (a *author) programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	all := harness.Programs()
	for name := range strings.FieldsSeq("sh make awk cat cp diff echo grep ls mkdir mktemp mv pwd rm sed tail") {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("this system has no %s", name)
		}
		all[name] = path
	}
	for name, path := range all {
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (a *author) command(text, kubeconfig string, more ...string) *exec.Cmd {
	place := filepath.Join(a.home, ".pwd")
	// The page's waits suffice for a user's machine.
	text = strings.ReplaceAll(text, "--timeout=60s", harness.Timeout)
	script := fmt.Sprintf("set -e\n[ ! -e %[1]s ] || cd \"$(cat %[1]s)\"\n%[2]s\npwd >%[1]s\n", place, text)
	cmd := exec.CommandContext(context.WithoutCancel(a.env.T().Context()), filepath.Join(a.path, "sh"), "-c", script)
	cmd.Dir = a.home
	cmd.Env = append([]string{"PATH=" + a.path, "HOME=" + a.home, "KUBECONFIG=" + kubeconfig}, more...)
	return cmd
}

// run runs commands in the folder where the previous commands ended. A busy API server
// lists a new kind a few seconds after its CRD is established, so kubectl may not know the
// kind at first.
func (a *author) run(text string) (string, error) {
	var printed []byte
	var failure error
	a.env.Wait("kubectl to find the kind", func(context.Context) error {
		printed, failure = a.command(text, a.kubeconfig).CombinedOutput()
		if bytes.Contains(printed, []byte("ensure CRDs are installed first")) {
			return failure
		}
		return nil
	})
	return string(printed), failure
}

// waitRefused waits until the API server uses the CRD that refuses the request.
func (a *author) waitRefused(command string) {
	a.env.Wait("the API server to refuse: "+command, func(context.Context) error {
		printed, err := a.command(strings.TrimSpace(command)+" --dry-run=server", a.kubeconfig).CombinedOutput()
		if err == nil {
			return fmt.Errorf("it accepts: %s", printed)
		}
		return nil
	})
}

func (a *author) account() harness.Account {
	return harness.ServiceAccount("shop-system", "shop-controller-manager")
}

// runOperator runs the operator, in place of one that is already running.
func (a *author) runOperator(text string) {
	t := a.env.T()
	t.Helper()
	if a.end != nil {
		a.end()
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.CreateTemp(a.home, "operator-*.log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := a.command(text, a.kubeconfig, "RUN_FLAGS=--metrics-bind-address=0 --health-probe-bind-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	a.end = a.env.Background(cmd)
	t.Cleanup(func() {
		if t.Failed() {
			data, err := os.ReadFile(log.Name())
			t.Logf("log of the operator (%v):\n%s", err, data)
		}
	})
}

// cleanUp removes what the page leaves in the cluster: first custom resources
// and kinds, while the operator is running to uninstall them, then everything
// else.
func (a *author) cleanUp() {
	t := a.env.T()
	if printed, err := a.run("make uninstall"); err != nil {
		t.Errorf("make uninstall: %v\n%s", err, printed)
	}
	if a.end != nil {
		a.end()
	}
	if printed, err := a.run("make undeploy"); err != nil {
		t.Errorf("make undeploy: %v\n%s", err, printed)
	}
}
