package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// asMain makes the test binary run main.
const asMain = "CHARTWRIGHT_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(withCache(m))
}

// withCache runs the tests with a cache folder of their own.
func withCache(m *testing.M) int {
	folder, err := os.MkdirTemp("", "chartwright-cache-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Setenv("XDG_CACHE_HOME", folder); err != nil {
		panic(err)
	}
	return m.Run()
}

// program runs chartwright as a process, without a cluster.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asMain+"=1", "KUBECONFIG="+filepath.Join(t.TempDir(), "none"), "HOME="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func find(t *testing.T, name string) *cobra.Command {
	t.Helper()
	cmd, _, err := newRoot().Find([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestRun_Flags(t *testing.T) {
	flags := find(t, "run").Flags()
	for _, test := range []struct{ name, kind, fallback string }{
		{"watches-file", "string", ""},
		{"charts-dir", "string", ""},
		{"install-crds", "bool", "false"},
		{"operator-name", "string", "chartwright"},
		{"reconcile-period", "duration", "0s"},
		{"min-reconcile-period", "duration", "10s"},
		{"max-concurrent-reconciles", "int", strconv.Itoa(runtime.NumCPU())},
		{"max-concurrent-actions", "int", "16"},
		{"metrics-bind-address", "string", "127.0.0.1:8080"},
		{"metrics-secure", "boolfunc", ""},
		{"metrics-require-rbac", "boolfunc", ""},
		{"metrics-cert-path", "string", ""},
		{"metrics-cert-name", "string", "tls.crt"},
		{"metrics-cert-key", "string", "tls.key"},
		{"health-probe-bind-address", "string", ":8081"},
		{"pprof-bind-address", "string", ""},
		{"leader-elect", "bool", "false"},
		{"leader-election-id", "string", ""},
		{"leader-election-namespace", "string", ""},
		{"graceful-shutdown-timeout", "duration", "25s"},
		{"zap-devel", "bool", "false"},
		{"zap-encoder", "", ""},
		{"zap-log-level", "", ""},
		{"zap-stacktrace-level", "", ""},
		{"zap-time-encoding", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			flag := flags.Lookup(test.name)
			if flag == nil {
				t.Fatal("missing")
			}
			if test.kind != "" && (flag.Value.Type() != test.kind || flag.Value.String() != test.fallback) {
				t.Errorf("type %s, default %q; want %s, %q", flag.Value.Type(), flag.Value.String(), test.kind, test.fallback)
			}
			if flag.Usage == "" {
				t.Error("no help")
			}
			if flag.Deprecated != "" {
				t.Errorf("deprecated: %s", flag.Deprecated)
			}
		})
	}
}

func TestRun_DeprecatedFlagsSetNewFlags(t *testing.T) {
	for _, test := range []struct{ old, now, value string }{
		{"metrics-addr", "metrics-bind-address", ":9999"},
		{"enable-leader-election", "leader-elect", "true"},
	} {
		t.Run(test.old, func(t *testing.T) {
			flags := find(t, "run").Flags()
			flags.SetOutput(new(bytes.Buffer))
			if flag := flags.Lookup(test.old); flag == nil || !strings.Contains(flag.Deprecated, "--"+test.now) {
				t.Fatalf("--%s is not deprecated in favor of --%s", test.old, test.now)
			}
			if err := flags.Parse([]string{"--" + test.old + "=" + test.value}); err != nil {
				t.Fatal(err)
			}
			if got := flags.Lookup(test.now).Value.String(); got != test.value {
				t.Errorf("--%s sets --%s to %q", test.old, test.now, got)
			}
		})
	}
}

func TestVersion_TextAndJSON(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"version"}, args...))
		err := root.Execute()
		return out.String(), err
	}
	for _, output := range []string{"-ojson", "--output=json"} {
		text, err := run(output)
		if err != nil {
			t.Fatal(err)
		}
		var info map[string]string
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if info["version"] == "" || info["go"] != runtime.Version() || info["platform"] != runtime.GOOS+"/"+runtime.GOARCH {
			t.Errorf("%s", text)
		}
	}
	text, err := run()
	if err != nil || !strings.HasPrefix(text, "chartwright ") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := run("-oxml"); err == nil || !strings.Contains(err.Error(), "expected json") {
		t.Errorf("-o xml: %v", err)
	}
	if _, err := run("more"); err == nil {
		t.Error("an argument is accepted")
	}
}

func TestVersion_PrintsToStdout(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"version", "-o", "json"}, {"version", "-o", "yaml"}} {
		if code, stdout, stderr := program(t, args...); code != 0 || stdout == "" || stderr != "" {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestRun_RefusesInvalidOptions(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "watches.yaml")
	if err := os.WriteFile(file, []byte("version: v1\nkind: A\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(folder, "empty.yaml")
	if err := os.WriteFile(empty, []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		want []string
	}{
		{"invalid watches file", []string{"--watches-file", file}, []string{
			"invalid watches file",
			file + ":1: ",
		}},
		{"missing watches file", []string{"--watches-file", filepath.Join(folder, "none")}, []string{"no such file"}},
		{"empty watches file", []string{"--watches-file", empty}, []string{"no kinds to serve"}},
		{"invalid options", []string{"--operator-name", "No Name", "--max-concurrent-reconciles", "0", "--max-concurrent-actions", "-1", "--reconcile-period", "-1s", "--min-reconcile-period", "99ms"}, []string{
			`--operator-name "No Name"`, "--max-concurrent-reconciles is 0", "--max-concurrent-actions is -1", "--reconcile-period is -1s",
			"--min-reconcile-period is 99ms: expected 100ms or more",
		}},
		{"pprof on all addresses", []string{"--pprof-bind-address", ":6060"}, []string{
			`--pprof-bind-address ":6060": expected a loopback address, 127.0.0.1, [::1] or localhost`,
		}},
		{"metrics without TLS on all addresses", []string{"--metrics-bind-address", ":8080", "--metrics-secure=false"}, []string{
			`--metrics-secure=false: metrics without TLS require a loopback address`,
		}},
		{"token without TLS", []string{"--metrics-require-rbac"}, []string{"--metrics-require-rbac: without TLS tokens"}},
		{"missing certificate", []string{"--metrics-bind-address", ":8443", "--metrics-cert-path", folder}, []string{
			"expected a certificate tls.crt and its key tls.key: open " + filepath.Join(folder, "tls.crt"),
		}},
		{"invalid boolean", []string{"--metrics-secure=maybe"}, []string{"--metrics-secure"}},
		{"unknown flag", []string{"--watch-file", file}, []string{"unknown flag: --watch-file"}},
		{"argument", []string{"now"}, []string{"unknown command"}},
		{"no cluster", nil, []string{"connect by $KUBECONFIG"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := program(t, append([]string{"run"}, test.args...)...)
			if code != 1 || stdout != "" {
				t.Errorf("exit code %d, stdout %q", code, stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr does not contain %q:\n%s", want, stderr)
				}
			}
			if strings.Contains(stderr, "goroutine") {
				t.Errorf("panic:\n%s", stderr)
			}
		})
	}
}

// The operator would wait for an invalid namespace forever.
func TestRun_RefusesInvalidNamespace(t *testing.T) {
	t.Setenv(watchNamespace, "team-a team-b")
	code, _, stderr := program(t, "run")
	if want := `$WATCH_NAMESPACE: "team-a team-b" is not a namespace name`; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, expected %q:\n%s", code, want, stderr)
	}
}

func TestSplitNamespaces_RemovesDuplicates(t *testing.T) {
	for list, want := range map[string][]string{
		"": nil, " , ,": nil, "a": {"a"}, "a,b": {"a", "b"}, " a , b ,": {"a", "b"},
		"a,a": {"a"}, "a,b, a": {"a", "b"},
	} {
		if diff := cmp.Diff(want, splitNamespaces(list)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", list, diff)
		}
	}
}
