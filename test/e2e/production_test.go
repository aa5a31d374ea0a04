package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestProduction goes through docs/production.md as a new admin would, on a
// cluster with nothing in it. Blocks of
//
//	sh          are run, and have to succeed
//	sh refused  are run, and have to fail
//	sh image    are for make, which is asked what it would do: no image is built
//	sh restore  are run after all that was in the namespace is gone
//	text        are what the block before prints, at least; see TestChartAuthors
//
// No image can run there. In its place the operator is a process that does what
// the Deployment says, with the token of the deployed account and nothing else.
func TestProduction(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	own := env.NewCluster()
	admin := &author{env: env, home: env.Repository(), kubeconfig: own.AdminKubeconfig()}
	admin.path = admin.programs(t)
	deployed := &deployed{env: env, own: own}
	// What the page takes for granted: the Prometheus operator, and Prometheus.
	if _, err := own.TryKubectl(monitoringKinds, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	own.Kubectl("create", "namespace", "monitoring")
	own.Kubectl("create", "serviceaccount", "-n", "monitoring", "prometheus")
	certificate := deployed.certificate(admin.home)

	page, err := os.ReadFile(harness.Root("docs", "production.md"))
	if err != nil {
		t.Fatal(err)
	}
	var said string
	blocks := fenced(string(page))
	if len(blocks) < 20 {
		t.Fatalf("only %d blocks are found", len(blocks))
	}
	for _, block := range blocks {
		text := block.text
		switch block.kind {
		case "text":
			expectOutput(t, block, said)
			continue
		case "sh image":
			text = strings.ReplaceAll(text, "make ", "make -n ")
		case "sh restore":
			deployed.stop()
			loseAll(own, "try")
		case "sh", "sh refused":
		default:
			t.Errorf("line %d: a block of %q is not tested", block.line, block.kind)
			continue
		}
		// Line by line, for the operator has to follow what each changes.
		var all strings.Builder
		for _, command := range commandsOf(text) {
			if strings.HasPrefix(command, "kubectl delete -k") {
				// The order in which its rights go and it ends is nobody's.
				deployed.stop()
			}
			printed, err := admin.run(command)
			all.WriteString(printed)
			if (err != nil) != (block.kind == "sh refused") {
				t.Fatalf("line %d: %v\n%s\n%s", block.line, err, command, printed)
			}
			if changing.MatchString(command) {
				deployed.follow()
			}
		}
		said = all.String()
		if strings.Contains(text, "metrics-certificate") {
			deployed.expectScrapes(certificate)
		}
	}
	deployed.expectNoRefusal()
}

// changing are commands that may change the Deployment.
var changing = regexp.MustCompile(`^kubectl (apply|scale|set|delete) `)

// expectNoRefusal looks into the audit log: the operator did all this as the
// accounts that were deployed, and what these may do was enough.
func (d *deployed) expectNoRefusal() {
	t := d.env.T()
	t.Helper()
	if len(d.accounts) != 2 {
		t.Errorf("the operator has logged in as %v", d.accounts)
	}
	for account := range d.accounts {
		if requests := d.own.Requests(account); len(requests) < 50 {
			t.Errorf("%s has asked for %d things only", account.User(), len(requests))
		}
		for _, request := range d.own.Denied(account) {
			// A kind without a namespace is none for an operator of a few.
			if request.ObjectRef.Resource != "configs" || account.User() != "system:serviceaccount:team-a:chartwright-controller-manager" {
				t.Errorf("%s was refused: %s: %s", account.User(), request, request.ResponseStatus.Message)
			}
		}
	}
}

// commandsOf splits a script into commands, of which loops and texts to be fed
// take several lines.
func commandsOf(script string) []string {
	var commands []string
	current, until := "", ""
	for line := range strings.Lines(script) {
		current += line
		switch line = strings.TrimSpace(line); {
		case until == "" && strings.HasSuffix(line, "<<'END'"):
			until = "END"
		case until == "" && strings.HasPrefix(line, "for "):
			until = "done"
		case line == until:
			until = ""
		}
		if until == "" {
			commands, current = append(commands, current), ""
		}
	}
	return commands
}

// loseAll takes away a namespace with all that is in it, as if the cluster had
// been lost: nobody uninstalls anything.
func loseAll(own *harness.OwnCluster, namespace string) {
	for resource := range strings.FieldsSeq(own.Kubectl("get", "-o", "name", "-k", harness.Root("config", "crd"))) {
		_, kind, _ := strings.Cut(resource, "/")
		for object := range strings.FieldsSeq(own.Kubectl("get", kind, "-n", namespace, "-o", "name")) {
			own.Kubectl("patch", object, "-n", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		}
	}
	own.Kubectl("delete", "namespace", namespace, "--timeout=60s")
}

// expectScrapes asks for the metrics as Prometheus does, and as others do.
func (d *deployed) expectScrapes(certificate []byte) {
	t := d.env.T()
	t.Helper()
	token := func(namespace, name string) string {
		return strings.TrimSpace(d.own.Kubectl("create", "token", "-n", namespace, name))
	}
	for _, scrape := range []struct {
		token  string
		status int
		says   string
	}{
		{"", http.StatusUnauthorized, ""},
		{token("monitoring", "default"), http.StatusForbidden, "monitoring:default"},
		{token("monitoring", "prometheus"), http.StatusOK, `chartwright_releases{kind="PodSet.app.example.com",status="deployed"} 1`},
	} {
		if text := d.metrics.WaitScrape(scrape.token, certificate, scrape.status); !strings.Contains(text, scrape.says) {
			t.Errorf("a scrape that is answered with %d lacks %q:\n%s", scrape.status, scrape.says, text)
		}
	}
}

// certificate makes one for the metrics, in the files that the page names.
func (d *deployed) certificate(dir string) []byte {
	t := d.env.T()
	t.Helper()
	certificate := d.env.NewMetrics().Certificate(dir)
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return certificate
}
