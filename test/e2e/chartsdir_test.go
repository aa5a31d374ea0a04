package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// folder is a folder of charts.
type folder struct {
	t   *testing.T
	dir string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

// write writes a file and creates its folders.
func (f folder) write(name, content string) {
	f.t.Helper()
	name = filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// link writes a symbolic link.
func (f folder) link(to, name string) {
	f.t.Helper()
	if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

// bind writes the kind.yaml that binds a kind to the chart in the same folder.
func (f folder) bind(name string, kind harness.Kind) {
	f.t.Helper()
	entry := harness.MakeEntry(kind, "")
	delete(entry, "chart")
	data, err := json.MarshalIndent(entry, "", "  ")
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name+"/kind.yaml", string(data))
}

// chart copies one of the test's charts into a folder.
func (f folder) chart(name, chart string) {
	f.t.Helper()
	if err := os.CopyFS(filepath.Join(f.dir, name), os.DirFS(harness.Chart(chart))); err != nil {
		f.t.Fatal(err)
	}
}

func TestChartsDir_ServedInAdditionToWatchesFile(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	entry, loose, packed, mounted := env.NewKind("Entry"), env.NewKind("Loose"), env.NewKind("Packed"), env.NewKind("Mounted")
	kinds := []harness.Kind{entry, loose, packed, mounted}
	for _, kind := range kinds {
		env.InstallCRD(kind)
	}
	charts := newFolder(t)
	charts.chart("loose", "plain")
	charts.bind("loose", loose)
	// As the kubelet mounts a ConfigMap with a packaged chart.
	charts.bind("packed/..2026_11_21", packed)
	env.Helm("package", harness.Chart("plain"), "--destination", filepath.Join(charts.dir, "packed", "..2026_11_21"))
	charts.link("..2026_11_21", "packed/..data")
	charts.link("..data/kind.yaml", "packed/kind.yaml")
	charts.link("..data/plain-1.2.3.tgz", "packed/plain-1.2.3.tgz")
	// As the kubelet mounts a volume of folders.
	charts.chart("..2026_11_21/mounted", "plain")
	charts.bind("..2026_11_21/mounted", mounted)
	charts.link("..2026_11_21", "..data")
	charts.link("..data/mounted", "mounted")

	metrics := env.NewMetrics()
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(entry, harness.Chart("plain"))), ChartsDir: charts.dir,
		Args: metrics.Args(), Env: []string{"POD_NAMESPACE=" + env.Namespace, "POD_NAME=operator-0"},
	})
	// The operator gets no permissions for broken entries.
	charts.chart("twice", "plain")
	charts.bind("twice", entry)
	charts.write("typo/kind.yaml", "group: a.test\nversion: v1\nkind: Typo\nchrat: x\n")
	charts.write("corrupt/kind.yaml", "group: a.test\nversion: v1\nkind: Corrupt\n")
	charts.write("corrupt/corrupt.tgz", "no archive")
	operator.Start()

	name := func(folder string) string { return filepath.Join(charts.dir, folder) }
	broken := map[string]string{
		"twice":   name("twice") + "/kind.yaml:1: " + entry.GroupKind().String() + " is already served by ",
		"typo":    name("typo") + `/kind.yaml:4: unknown key "chrat"`,
		"corrupt": name("corrupt") + "/kind.yaml:1: chart " + name("corrupt") + "/corrupt.tgz: ",
	}
	var wantText []string
	for _, kind := range kinds {
		wantText = append(wantText, kind.GroupKind().String()+": Serving\n")
	}
	for folder, why := range broken {
		wantText = append(wantText, ": Broken, of "+name(folder)+"\n  "+why)
	}
	operator.WaitReadyz(http.StatusOK, wantText...)

	for _, kind := range kinds {
		web := harness.MakeCR(kind, strings.ToLower(kind.Kind)).Set("message", kind.Kind).Obj()
		env.Create(web)
		if status := env.WaitReady(web); status.Release.Chart != "plain-1.2.3" {
			t.Errorf("the release of %s is %+v", kind.Kind, status.Release)
		}
		expectData(t, env, web.GetName()+"-0", "message", kind.Kind)
		if n := metrics.Sum("chartwright_kind_state", map[string]string{"kind": kind.GroupKind().String(), "folder": "", "state": "Serving"}); n != 1 {
			t.Errorf("%s is counted as serving %v times", kind.Kind, n)
		}
	}
	for folder, why := range broken {
		if n := metrics.Sum("chartwright_kind_state", map[string]string{"folder": name(folder), "state": "Broken"}); n != 1 {
			t.Errorf("%s is counted as broken %v times", folder, n)
		}
		reported := false
		for line := range strings.SplitSeq(operator.Log(), "\n") {
			var entry struct{ Level, Source, Error string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Source == name(folder) {
				reported = reported || entry.Level == "error" && strings.HasPrefix(entry.Error, why)
			}
		}
		if !reported {
			t.Errorf("the log does not mention %s", folder)
		}
	}
	pod := harness.Object("v1", "Pod", "operator-0")
	if event := env.WaitEvent(pod, "KindBroken"); event.Type != "Warning" || !strings.HasPrefix(event.Note, charts.dir) {
		t.Errorf("the event is %+v", event)
	}
}

// TestChartsDir_WithoutValidChart: the operator keeps running, so that /readyz
// can report the reason.
func TestChartsDir_WithoutValidChart(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	charts := newFolder(t)
	operator := env.NewOperator(harness.Options{ChartsDir: charts.dir, Args: []string{"--watches-file="}, Account: env.NewAccount()})
	charts.write("typo/kind.yaml", "kind: Typo\nversion: v1\nchart: x\n")
	charts.write("typo/Chart.yaml", "apiVersion: v2\nname: typo\nversion: 1.0.0\n")
	operator.Launch()
	operator.WaitReadyz(http.StatusServiceUnavailable, "not ready: no kind can be served\nTypo: Broken, of ", "/kind.yaml:3: chart: a kind.yaml always belongs to the chart in its folder: remove the key\n")
	if err := operator.Probe(t.Context(), "/healthz"); err != nil {
		t.Error(err)
	}
	if strings.Contains(operator.Log(), "PodSet") {
		t.Error("the embedded kinds are served")
	}
}
