package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator"
)

// These are the arguments of its scaffolding and its image, and all other flags of its
// Helm operator.
func TestRun_AcceptsArgumentsOfOperatorSDK(t *testing.T) {
	for _, args := range [][]string{
		{"--watches-file=./watches.yaml"},
		{"--leader-elect", "--leader-election-id=nginx-operator", "--health-probe-bind-address=:6789"},
		{"--metrics-bind-address=127.0.0.1:8080", "--leader-elect"},
		{"--metrics-addr=127.0.0.1:8080", "--enable-leader-election", "--leader-election-id=nginx-operator"},
		{"--reconcile-period=1m0s", "--max-concurrent-reconciles=4", "--leader-election-namespace=operators"},
		{"--suppress-override-values", "--enable-http2"},
		{"--suppress-override-values=true", "--enable-http2=false"},
		{"--zap-devel", "--zap-encoder=console", "--zap-log-level=info", "--zap-stacktrace-level=error", "--zap-time-encoding=rfc3339"},
	} {
		flags := find(t, "run").Flags()
		flags.SetOutput(new(bytes.Buffer))
		if err := flags.Parse(args); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, name := range []string{"suppress-override-values", "enable-http2"} {
		if flag := find(t, "run").Flags().Lookup(name); !strings.Contains(flag.Deprecated, "no effect") {
			t.Errorf("--%s: deprecation is %q", name, flag.Deprecated)
		}
	}
}

func TestRunFirst_MovesRunBeforeFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                   "",
		"run":                "run",
		"run --leader-elect": "run --leader-elect",
		"--leader-elect run": "run --leader-elect",
		"--metrics-secure --metrics-bind-address=:8443 run --leader-elect": "run --metrics-secure --metrics-bind-address=:8443 --leader-elect",
		"--operator-name run " + "run --zap-devel":                         "run --operator-name run --zap-devel",
		"--enable-http2 run":     "run --enable-http2",
		"--leader-elect run now": "run --leader-elect now",
		"--operator-name run":    "run --operator-name run",
		"--leader-elect":         "run --leader-elect",
		"--metrics-bind-address=127.0.0.1:8080 --leader-elect --leader-election-id nginx": "run --metrics-bind-address=127.0.0.1:8080 --leader-elect --leader-election-id nginx",
		"--operator-name":          "--operator-name",
		"--help":                   "--help",
		"-h":                       "-h",
		"--watch-file=a":           "--watch-file=a",
		"help":                     "help",
		"--leader-elect version":   "--leader-elect version",
		"--leader-elect=maybe run": "--leader-elect=maybe run",
		"--watch-file=a run":       "--watch-file=a run",
		"--help run":               "--help run",
		"version --output run":     "version --output run",
		"__complete run --lead":    "__complete run --lead",
	} {
		if diff := cmp.Diff(strings.Fields(want), runFirst(strings.Fields(args))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	// The flags take effect, and a deprecated flag gives one warning.
	for _, rest := range [][]string{{"run"}, nil} {
		code, _, stderr := program(t, append([]string{"--enable-http2", "--metrics-secure=false", "--metrics-bind-address=:8443"}, rest...)...)
		if code != 1 || !strings.Contains(stderr, "--metrics-secure=false: metrics without TLS") || strings.Count(stderr, "--enable-http2") != 1 {
			t.Errorf("exit code %d:\n%s", code, stderr)
		}
	}
}

func TestLeaseByName_FlagTakesPrecedence(t *testing.T) {
	for _, test := range []struct{ name, flag, want string }{
		{"", "", "chartwright.chartwright.dev"},
		{"nginx-operator", "", "nginx-operator"},
		{"nginx-operator", "own", "own"},
	} {
		options := operator.Defaults()
		options.LeaderElectionID = test.flag
		leaseByName(&options, test.name, funcr.New(func(string, string) {}, funcr.Options{}))
		if got := options.LeaseName(); got != test.want {
			t.Errorf("$OPERATOR_NAME %q, --leader-election-id %q: lease is %s, want %s", test.name, test.flag, got, test.want)
		}
	}
}

func TestWarnAllowsEverything_NamesWhatWouldBeRefused(t *testing.T) {
	kinds, err := catalog.Find(project(t, map[string]string{
		"watches.yaml": `
- {group: a.example.com, version: v1, kind: Local, chart: helm-charts/local}
- {group: a.example.com, version: v1, kind: Global, chart: helm-charts/global}
- {group: a.example.com, version: v1, kind: Moved, chart: helm-charts/global, allow: {}}
#+kubebuilder:scaffold:watch
`,
		"helm-charts/local/Chart.yaml":        "{apiVersion: v2, name: local, version: 1.0.0}",
		"helm-charts/local/templates/a.yaml":  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		"helm-charts/global/Chart.yaml":       "{apiVersion: v2, name: global, version: 1.0.0}",
		"helm-charts/global/values.yaml":      "target: other\n",
		"helm-charts/global/templates/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: {{ .Values.target }}}}",
		"helm-charts/global/templates/b.yaml": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: b}}",
		"helm-charts/global/templates/c.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {has: {{ lookup "v1" "Secret" "kube-system" "a" | empty | quote }}}}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string][]string{}
	warnAllowsEverything(kinds, funcr.NewJSON(func(line string) {
		var message struct {
			Kind, Entry    string
			WouldBeRefused []string
		}
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Error(err)
		}
		if !strings.Contains(line, "operator-sdk") || !strings.Contains(message.Entry, "watches.yaml:") {
			t.Errorf("message is %s", line)
		}
		refused[message.Kind] = message.WouldBeRefused
	}, funcr.Options{}))
	want := map[string][]string{
		"Local.a.example.com":  {},
		"Global.a.example.com": {"otherNamespaces: true", "clusterScoped: [ClusterRole.rbac.authorization.k8s.io]", "lookup: all"},
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}
