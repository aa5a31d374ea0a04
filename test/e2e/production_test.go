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

// TestProduction follows docs/guides/production.md as a new administrator on an empty
// cluster. Blocks of
//
//	sh          are run and must succeed
//	sh refused  are run and must fail
//	sh image    are passed to make as a dry run: no image is built
//	sh restore  are run after the namespace was lost
//	text        are part of the previous block's output; see TestChartAuthors
//
// The cluster cannot run images. Instead, the operator is a local process that
// follows the Deployment and uses only the token of the deployed account.
func TestProduction(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	own := env.NewCluster()
	admin := &author{env: env, home: env.Repository(), kubeconfig: own.AdminKubeconfig()}
	admin.path = admin.programs(t)
	deployed := &deployed{env: env, own: own}
	// Prerequisites of the page: the Prometheus operator, and Prometheus.
	if _, err := own.TryKubectl(namespacedKinds("monitoring.coreos.com", "ServiceMonitor", "PrometheusRule"), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	own.Kubectl("create", "namespace", "monitoring")
	own.Kubectl("create", "serviceaccount", "-n", "monitoring", "prometheus")
	certificate := deployed.certificate(admin.home)

	page, err := os.ReadFile(harness.Root("docs", "guides", "production.md"))
	if err != nil {
		t.Fatal(err)
	}
	var output string
	blocks := fenced(string(page))
	if len(blocks) < 20 {
		t.Fatalf("found only %d blocks", len(blocks))
	}
	for _, block := range blocks {
		text := block.text
		switch block.kind {
		case "text":
			expectOutput(t, block, output)
			continue
		case "sh image":
			text = strings.ReplaceAll(text, "make ", "make -n ")
		case "sh restore":
			deployed.stop()
			loseAll(own, "try")
		case "sh", "sh refused":
		default:
			t.Errorf("line %d: no test for blocks of %q", block.line, block.kind)
			continue
		}
		// One command at a time, because the operator must follow each change.
		var all strings.Builder
		for _, command := range commandsOf(text) {
			if strings.HasPrefix(command, "kubectl delete -k") {
				// The permissions and the Deployment are deleted in any order.
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
		output = all.String()
		if strings.Contains(text, "metrics-certificate") {
			deployed.expectScrapes(certificate)
		}
	}
	deployed.expectNoRefusal()
}

// changing matches commands that may change the Deployment.
var changing = regexp.MustCompile(`^kubectl (apply|scale|set|delete) `)

// expectNoRefusal checks the audit log: the operator used only the deployed
// accounts, and their permissions were sufficient.
func (d *deployed) expectNoRefusal() {
	t := d.env.T()
	t.Helper()
	if len(d.accounts) != 2 {
		t.Errorf("the operator has used the accounts %v", d.accounts)
	}
	for account := range d.accounts {
		if requests := d.own.Requests(account); len(requests) < 50 {
			t.Errorf("%s made only %d requests", account.User(), len(requests))
		}
		for _, request := range d.own.Denied(account) {
			// An operator of some namespaces does not serve cluster-scoped
			// kinds.
			if resource := request.ObjectRef.Resource; resource != "configs" && resource != "clusteraddons" || account.User() != "system:serviceaccount:team-a:chartwright-controller-manager" {
				t.Errorf("%s was denied: %s: %s", account.User(), request, request.ResponseStatus.Message)
			}
		}
	}
}

// commandsOf splits a script into commands. Loops and here-documents take
// several lines.
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

// loseAll deletes a namespace with all its contents without uninstalling, as if
// the cluster had been lost.
func loseAll(own *harness.OwnCluster, namespace string) {
	for resource := range strings.FieldsSeq(own.Kubectl("get", "-o", "name", "-k", harness.Root("config", "crd"))) {
		_, kind, _ := strings.Cut(resource, "/")
		for object := range strings.FieldsSeq(own.Kubectl("get", kind, "-n", namespace, "-o", "name")) {
			own.Kubectl("patch", object, "-n", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		}
	}
	own.Kubectl("delete", "namespace", namespace, harness.Timeout)
}

// expectScrapes scrapes the metrics as Prometheus does, and with other
// credentials.
func (d *deployed) expectScrapes(certificate []byte) {
	t := d.env.T()
	t.Helper()
	token := func(namespace, name string) string {
		return strings.TrimSpace(d.own.Kubectl("create", "token", "-n", namespace, name))
	}
	for _, scrape := range []struct {
		token    string
		status   int
		wantText string
	}{
		{"", http.StatusUnauthorized, ""},
		{token("monitoring", "default"), http.StatusForbidden, "monitoring:default"},
		{token("monitoring", "prometheus"), http.StatusOK, `chartwright_releases{kind="PodSet.app.example.com",status="deployed"} 1`},
	} {
		if text := d.metrics.WaitScrape(scrape.token, certificate, scrape.status); !strings.Contains(text, scrape.wantText) {
			t.Errorf("the response with status %d does not contain %q:\n%s", scrape.status, scrape.wantText, text)
		}
	}
}

// certificate creates a certificate for the metrics, in the files that the page
// names.
func (d *deployed) certificate(dir string) []byte {
	t := d.env.T()
	t.Helper()
	certificate := d.env.NewMetrics().Certificate(dir)
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return certificate
}
