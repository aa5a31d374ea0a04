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
	"github.com/chartwright/chartwright/internal/watches"
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

// The charts of the entries are missing, so that an analysis would panic.
func TestLogAllowsEverything_NamesKindsWithoutAnalysis(t *testing.T) {
	var lines []string
	log := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	kinds, err := watches.Parse("watches.yaml", []byte(`
- {group: a.example.com, version: v1, kind: First, chart: helm-charts/first}
- {group: a.example.com, version: v1, kind: Second, chart: helm-charts/second}
- {group: a.example.com, version: v1, kind: Moved, chart: helm-charts/second, allow: {}}
`))
	if err != nil {
		t.Fatal(err)
	}
	served := make([]catalog.Kind, len(kinds))
	for i, entry := range kinds {
		served[i] = catalog.Kind{Watch: entry}
	}
	logAllowsEverything(served, log)
	if len(lines) != 1 {
		t.Fatalf("got %d log messages, want 1: %v", len(lines), lines)
	}
	var message struct {
		Msg   string
		Kinds []string
	}
	if err := json.Unmarshal([]byte(lines[0]), &message); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(message.Msg, "chartwright lint") {
		t.Errorf("the message %q does not name the command", message.Msg)
	}
	if diff := cmp.Diff([]string{"First.a.example.com", "Second.a.example.com"}, message.Kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}

	lines = nil
	logAllowsEverything(served[2:], log)
	if len(lines) != 0 {
		t.Errorf("with an allow block in each entry, the log has %v", lines)
	}
}
