package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestWatchesFile_ErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	good := fmt.Sprintf("- group: a.test\n  version: v1\n  kind: Good\n  chart: %s\n", harness.Chart("plain"))
	for _, file := range []struct {
		name string
		text string
		// wantText are lines of the output, without the file's name.
		wantText []string
		// ends is set if the operator does not start either, because there is no entry.
		ends bool
	}{
		{
			"an unknown key", good + "  chrat: x\n",
			[]string{`5: unknown key "chrat": did you mean chart?`}, false,
		},
		{
			"a kind twice", good + good,
			[]string{"5: Good.a.test has two entries, the first on line 1"}, false,
		},
		{
			"a missing chart", "- group: a.test\n  version: v1\n  kind: A\n  chart: charts/missing\n",
			[]string{"4: chart charts/missing: not found"}, false,
		},
		{
			"missing fields", "- group: a.test\n  kind: A\n",
			[]string{"1: the entry has no version", "1: the entry has no chart"}, false,
		},
		{
			"a value of the wrong type", good + "  maxConcurrentReconciles: many\n",
			[]string{"5: maxConcurrentReconciles: expected an integer, found a string"}, false,
		},
		{
			"invalid YAML", good + "  timeout: a: b\n",
			[]string{"5: invalid YAML"}, true,
		},
		{
			"not a list", "group: a.test\n",
			[]string{"1: expected a list of entries"}, true,
		},
		{
			"everything at once", good + good + "  chrat: x\n- group: b.test\n  kind: B\n  chart: charts/missing\n",
			[]string{"5: Good.a.test has two entries", `9: unknown key "chrat"`, "10: the entry has no version", "12: chart charts/missing: not found"}, false,
		},
	} {
		t.Run(file.name, func(t *testing.T) {
			t.Parallel()
			env := env.For(t)
			kubeconfig, requests := deadCluster(t)
			path := env.WatchesText(file.text)
			check := func(code int, output string) {
				t.Helper()
				if code != 1 {
					t.Errorf("the exit code is %d, want 1", code)
				}
				for _, line := range file.wantText {
					if !strings.Contains(output, path+":"+line) {
						t.Errorf("the output does not contain %q", line)
					}
				}
				if n := strings.Count(output, path+":"); n != len(file.wantText) {
					t.Errorf("%d lines name the file, want %d", n, len(file.wantText))
				}
				if t.Failed() {
					t.Log(output)
				}
			}
			derived := env.NewUser().Operator("crd", "--watches-file", path)
			check(derived.Code, derived.Stderr)
			if file.ends {
				check(env.RunToEnd(kubeconfig, "--watches-file", path))
			}
			if n := requests.Load(); n > 0 {
				t.Errorf("%d requests to the cluster", n)
			}
		})
	}
}

// deadCluster returns a kubeconfig of a server that does not respond, and the
// number of requests to it.
func deadCluster(t *testing.T) (kubeconfig string, requests *atomic.Int32) {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	requests = &atomic.Int32{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			requests.Add(1)
			_ = connection.Close()
		}
	}()
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "http://%s"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, listener.Addr())
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, requests
}

func TestWatchesFile_ChartArchiveWithRelativePath(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	watches := env.Watches(harness.MakeEntry(kind, "plain-1.2.3.tgz"))
	env.Helm("package", harness.Chart("plain"), "--destination", filepath.Dir(watches))
	env.NewOperator(harness.Options{Watches: watches, Account: env.NewAccount()}).Start()
	web := harness.MakeCR(kind, "web").Set("message", "packed").Obj()
	env.Create(web)
	status := env.WaitReady(web)
	if status.Release.Chart != "plain-1.2.3" || status.Release.AppVersion != "4.5" {
		t.Errorf("the release is %+v", status.Release)
	}
	expectData(t, env, "web-0", "message", "packed")
}

func TestWatchesFile_OverrideValuesTakePrecedence(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithOverrides)
	web := harness.MakeCR(kind, "web").Set("message", "mine").Set("nested.word", "mine").Set("count", 1).Obj()
	env.Create(web)
	env.WaitReady(web)
	expectData(t, env, "web-0", "message", "mine")
	expectData(t, env, "web-0", "word", "shallow")
	expectData(t, env, "web-1", "word", "shallow")

	env.SetSpec(harness.MakeCR(kind, "web").Set("message", "yours").Set("nested.word", "yours").Obj())
	env.WaitRevision(web, 2)
	expectData(t, env, "web-1", "message", "yours")
	expectData(t, env, "web-1", "word", "shallow")
}

func TestWatchesFile_SelectorLimitsServedResources(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainOfTeamBlue)
	audit := env.Audit(harness.SharedUser())
	other := harness.MakeCR(kind, "other").Label("team", "red").Obj()
	bare := harness.MakeCR(kind, "bare").Obj()
	ours := harness.MakeCR(kind, "ours").Label("team", "blue").Obj()
	env.Create(other, bare, ours)
	env.WaitReady(ours)
	for _, request := range audit.Writes("ours") {
		t.Errorf("the operator wrote %v", request)
	}

	env.Kubectl("label", kind.Resource(), "bare", "team=blue")
	env.WaitReady(bare)
	env.ExpectRevisions("other", "")
	if status := env.Status(other); status.Release != nil {
		t.Errorf("a resource that is not selected has status %+v", status)
	}
}

func TestHistory_IsPruned(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithHistory2)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	for revision := int64(2); revision <= 4; revision++ {
		env.SetSpec(harness.MakeCR(kind, "web").Set("message", strconv.FormatInt(revision, 10)).Obj())
		env.WaitRevision(web, revision)
	}
	env.WaitRevisions("web", "3 superseded, 4 deployed")
}
