package chartsdir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator/kindset"
)

// disk is a folder of charts, with a clock that the test sets.
type disk struct {
	*Folder
	t     *testing.T
	set   *kindset.Set
	clock time.Time
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{Folder: newFolder(t.TempDir(), catalog.FolderDefaults{}), t: t, set: kindset.New(nil), clock: time.Now()}
	d.now = func() time.Time { return d.clock }
	d.Serve(d.set)
	d.Report(func([]catalog.Broken) {})
	return d
}

// write writes a file and creates its folders.
func (d *disk) write(name, content string) {
	d.t.Helper()
	path := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// chart writes a chart with a kind.
func (d *disk) chart(name, kind, version string) {
	d.write(name+"/Chart.yaml", "apiVersion: v2\nname: web\nversion: "+version+"\n")
	d.write(name+"/kind.yaml", "group: a.test\nversion: v1\nkind: "+kind+"\n")
}

func (d *disk) remove(name string) {
	d.t.Helper()
	if err := os.RemoveAll(filepath.Join(d.dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

// after advances the clock in steps, and scans after each.
func (d *disk) after(duration time.Duration) time.Duration {
	var next time.Duration
	for ; duration >= 0; duration -= time.Second {
		next = d.scan(0)
		d.report()
		if duration > 0 {
			d.clock = d.clock.Add(time.Second)
		}
	}
	return next
}

// expect compares the kinds that are served with the versions of their charts, and the
// problems.
func (d *disk) expect(when, want string, problems ...string) {
	d.t.Helper()
	var served []string
	for _, entry := range d.set.List() {
		served = append(served, entry.Kind.Kind+" "+entry.Kind.Chart.Version())
	}
	slices.Sort(served)
	if got := strings.Join(served, ", "); got != want {
		d.t.Errorf("%s: serves %q, want %q", when, got, want)
	}
	broken := d.Broken()
	if len(broken) != len(problems) {
		d.t.Errorf("%s: %d problems, want %d: %v", when, len(broken), len(problems), broken)
		return
	}
	for i, problem := range problems {
		if got := broken[i].Err.Error(); !strings.Contains(got, problem) {
			d.t.Errorf("%s: problem %q, want %q", when, got, problem)
		}
	}
}

func TestFolder_AddedChartIsServedWhenSettled(t *testing.T) {
	d := newDisk(t)
	d.after(time.Second)
	d.expect("empty", "")
	d.chart("web", "Web", "1.0.0")
	if next := d.scan(0); next != settleTime {
		t.Errorf("scans again after %s", next)
	}
	d.expect("just added", "")
	d.after(time.Second)
	d.write("web/templates/a.yaml", "apiVersion: v1\n")
	d.after(time.Second)
	d.expect("still being copied", "")
	d.after(2 * time.Second)
	d.expect("settled", "Web 1.0.0")
	if d.pending() {
		t.Error("a folder is pending")
	}
}

// TestFolder_UnreadableFile: a file that cannot be read is a problem of its folder only.
func TestFolder_UnreadableFile(t *testing.T) {
	d := newDisk(t)
	d.chart("web", "Web", "1.0.0")
	d.chart("shop", "Shop", "1.0.0")
	dangle := func(name string) string {
		t.Helper()
		path := filepath.Join(d.dir, filepath.FromSlash(name))
		if err := os.Symlink("nowhere", path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := dangle("web/values.yaml")
	d.after(time.Second)
	d.expect("not settled", "")
	d.after(3 * time.Second)
	d.expect("unreadable", "Shop 1.0.0", "web/values.yaml: no such file")
	if d.pending() {
		t.Error("a folder is pending")
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	d.after(3 * time.Second)
	d.expect("readable", "Shop 1.0.0, Web 1.0.0")
	dangle("web/values.yaml")
	d.after(3 * time.Second)
	d.expect("unreadable while it is served", "Shop 1.0.0, Web 1.0.0", "no such file or directory\nthe last valid version, chart web-1.0.0, is still served")
}

// TestFolder_ClaimsKindsOfFoldersThatExist: a kind whose folder cannot be served was not
// removed.
func TestFolder_ClaimsKindsOfFoldersThatExist(t *testing.T) {
	d := newDisk(t)
	expect := func(when string, web, other bool) {
		t.Helper()
		for kind, want := range map[string]bool{"Web": web, "Other": other} {
			if got := d.set.Claimed(schema.GroupKind{Group: "a.test", Kind: kind}); got != want {
				t.Errorf("%s: %s claimed: %v, want %v", when, kind, got, want)
			}
		}
	}
	d.after(time.Second)
	expect("empty", false, false)
	d.chart("web", "Web", "1.0.0")
	d.write("web/templates/a.yaml", "{{ broken")
	d.after(time.Second)
	expect("being copied", true, true)
	d.after(3 * time.Second)
	d.expect("broken", "", "unclosed action")
	expect("broken", true, false)
	d.remove("web/templates")
	d.after(3 * time.Second)
	d.expect("valid", "Web 1.0.0")
	expect("valid", false, false)
	d.write("other/kind.yaml", "group: a.test\nversion: v1\nkind: Other\n")
	d.after(3 * time.Second)
	expect("without chart", false, true)
	d.remove("other")
	d.after(time.Second)
	expect("removed", false, false)
}

func TestFolder_ChangesOfChartAndKind(t *testing.T) {
	d := newDisk(t)
	d.chart("web", "Web", "1.0.0")
	d.after(3 * time.Second)
	serial := func() int64 { return d.set.List()[0].Serial }
	first := serial()

	d.chart("web", "Web", "1.0.0")
	d.after(5 * time.Second)
	if serial() != first {
		t.Error("equal files replace the kind")
	}
	d.chart("web", "Web", "2.0.0")
	d.after(time.Second)
	d.expect("changed", "Web 1.0.0")
	d.after(2 * time.Second)
	d.expect("changed and settled", "Web 2.0.0")
	d.write("web/kind.yaml", "group: a.test\nversion: v1\nkind: Web\nmaxHistory: 3\n")
	d.after(3 * time.Second)
	if kind := d.set.List()[0].Kind; kind.HistoryLimit() != 3 {
		t.Errorf("kind.yaml has no effect: %+v", kind.Watch)
	}
	d.chart("web", "Site", "2.0.0")
	d.after(3 * time.Second)
	d.expect("another kind", "Site 2.0.0")
}

func TestFolder_BrokenKeepsLastVersion(t *testing.T) {
	d := newDisk(t)
	d.chart("web", "Web", "1.0.0")
	d.write("bad/kind.yaml", "kind: Bad\n")
	d.after(3 * time.Second)
	d.expect("broken from the start", "Web 1.0.0", "bad: no chart")
	d.write("web/Chart.yaml", "nonsense: [")
	d.after(3 * time.Second)
	d.expect("broken", "Web 1.0.0", "bad: no chart", "the last valid version, chart web-1.0.0, is still served")
	d.chart("web", "Web", "1.1.0")
	d.remove("bad")
	d.after(3 * time.Second)
	d.expect("repaired", "Web 1.1.0")
}

func TestFolder_Removal(t *testing.T) {
	d := newDisk(t)
	d.chart("web", "Web", "1.0.0")
	d.chart("keep", "Keep", "1.0.0")
	d.after(3 * time.Second)
	serial := d.set.List()[1].Serial

	d.remove("web")
	d.after(20 * time.Second)
	d.expect("gone for 20 s", "Keep 1.0.0, Web 1.0.0")
	d.chart("web", "Web", "1.0.0")
	d.after(40 * time.Second)
	d.expect("back", "Keep 1.0.0, Web 1.0.0")
	if d.set.List()[1].Serial != serial {
		t.Error("a folder that came back replaces the kind")
	}
	d.remove("web")
	d.after(31 * time.Second)
	d.expect("gone for 31 s", "Keep 1.0.0")

	// Without a chart and a kind.yaml the folder is no kind.
	d.chart("web", "Web", "1.0.0")
	d.after(3 * time.Second)
	d.remove("web/Chart.yaml")
	d.remove("web/kind.yaml")
	d.after(20 * time.Second)
	d.expect("emptied for 20 s", "Keep 1.0.0, Web 1.0.0")
	d.after(15 * time.Second)
	d.expect("emptied for 35 s", "Keep 1.0.0")
}

func TestFolder_EmptyOrUnreadableRootIsNoRemoval(t *testing.T) {
	d := newDisk(t)
	d.chart("web", "Web", "1.0.0")
	d.after(3 * time.Second)
	d.remove("web")
	d.after(time.Minute)
	d.expect("empty", "Web 1.0.0", "is empty: the kinds that were read from it are still served")
	d.remove("")
	d.after(time.Minute)
	d.expect("missing", "Web 1.0.0", "read the folder of charts")
	d.chart("web", "Web", "1.0.0")
	d.after(3 * time.Second)
	d.expect("back", "Web 1.0.0")
}

func TestFolder_Conflict(t *testing.T) {
	d := newDisk(t)
	d.chart("one", "Web", "1.0.0")
	d.chart("two", "Web", "2.0.0")
	d.after(3 * time.Second)
	d.expect("both", "Web 1.0.0", "two/kind.yaml:1: Web.a.test is already served by ")
	d.chart("keep", "Keep", "1.0.0")
	d.remove("one")
	d.after(40 * time.Second)
	d.expect("one", "Keep 1.0.0, Web 2.0.0")
}

// TestOpen_ReadsSettledFolders: an unchanged folder is read at once,
// another one later.
func TestOpen_ReadsSettledFolders(t *testing.T) {
	d := newDisk(t)
	d.chart("old", "Old", "1.0.0")
	d.chart("new", "New", "1.0.0")
	before := time.Now().Add(-time.Minute)
	for _, name := range []string{"old/Chart.yaml", "old/kind.yaml", "old"} {
		if err := os.Chtimes(filepath.Join(d.dir, name), before, before); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := Open(d.dir, catalog.FolderDefaults{})
	if err != nil {
		t.Fatal(err)
	}
	if kinds := opened.Kinds(); len(kinds) != 1 || kinds[0].Kind != "Old" || !opened.pending() {
		t.Errorf("%d kinds were read, pending %v", len(kinds), opened.pending())
	}
	if _, err := Open(filepath.Join(d.dir, "none"), catalog.FolderDefaults{}); err == nil {
		t.Error("no error for a missing folder")
	}
}

// TestInspect_Links: the kubelet swaps the target of the link ..data.
func TestInspect_Links(t *testing.T) {
	d := newDisk(t)
	for _, version := range []string{"1", "2"} {
		d.write("web/.."+version+"/kind.yaml", "version "+version)
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(d.dir, name+".new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(d.dir, name+".new"), filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "web/..data")
	link("..data/kind.yaml", "web/kind.yaml")
	web := filepath.Join(d.dir, "web")
	before, err := read(web)
	if err != nil {
		t.Fatal(err)
	}
	link("..2", "web/..data")
	after, err := read(web)
	if err != nil || after.stamp == before.stamp || after.digest == before.digest {
		t.Errorf("the swap is not detected: %v", err)
	}
	link("loop", "web/loop")
	if _, err := stat(web); err == nil {
		t.Error("no error for a link to itself")
	}
}
