package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// hotChart is a folder of charts below, as the test has last written it.
type hotChart struct {
	folder folder
	name   string
	kind   harness.Kind

	exists, broken bool
	version        int
}

const hotTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {version: \"{{ .Chart.Version }}\"}\n"

// write writes the chart with a version that was not used before.
func (c *hotChart) write(version int) {
	c.version, c.exists, c.broken = version, true, false
	c.folder.write(c.name+"/templates/a.yaml", hotTemplate)
	c.repair()
	c.folder.bind(c.name, c.kind)
}

func (c *hotChart) repair() {
	c.broken = false
	c.folder.write(c.name+"/Chart.yaml", "apiVersion: v2\nname: hot\nversion: "+c.chartVersion()+"\n")
}

func (c *hotChart) chartVersion() string { return fmt.Sprintf("1.%d.0", c.version) }

func (c *hotChart) remove() {
	c.folder.t.Helper()
	c.exists, c.broken = false, false
	if err := os.RemoveAll(filepath.Join(c.folder.dir, c.name)); err != nil {
		c.folder.t.Fatal(err)
	}
}

// change makes a random change, and returns its name.
func (c *hotChart) change(random *rand.Rand, version int) string {
	if !c.exists {
		c.write(version)
		return "add"
	}
	switch random.IntN(5) {
	case 0:
		c.broken = true
		c.folder.write(c.name+"/Chart.yaml", "nonsense: [")
		return "break"
	case 1:
		c.repair()
		return "repair"
	case 2:
		c.folder.write(c.name+"/kind.yaml", fmt.Sprintf("group: %s\nversion: v1\nkind: %s\nmaxHistory: %d\n", c.kind.Group, c.kind.Kind, 3+random.IntN(5)))
		return "kind.yaml"
	case 3:
		c.remove()
		return "remove"
	default:
		c.write(version)
		return "change"
	}
}

func (c *hotChart) cr(name string) *unstructured.Unstructured {
	return harness.MakeCR(c.kind, strings.ToLower(c.kind.Kind)+name).Obj()
}

// sortedReadyz returns the lines of /readyz, in any order.
func sortedReadyz(env *harness.Env, operator *harness.Operator) string {
	env.T().Helper()
	_, text, err := operator.Readyz(env.T().Context())
	if err != nil {
		env.T().Fatal(err)
	}
	return strings.Join(slices.Sorted(strings.SplitSeq(text, "\n")), "\n")
}

// TestHotFolder_RandomChanges makes 50 random changes of four charts while the operator
// runs. The result is what a restart gives, and no request concerns the kind of the
// watches file. Deletions of a removed kind are carried out before and after the restart.
func TestHotFolder_RandomChanges(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	other := env.NewKind("Other")
	env.InstallCRD(other)
	charts := newFolder(t)
	var all []*hotChart
	for i, name := range []string{"Ant", "Bee", "Cat", "Dog"} {
		kind := env.NewKind(name)
		env.InstallCRD(kind)
		all = append(all, &hotChart{folder: charts, name: strings.ToLower(name), kind: kind})
		all[i].write(i)
	}
	operator := env.NewOperator(harness.Options{Watches: env.Watches(harness.MakeEntry(other, harness.Chart("plain"))), ChartsDir: charts.dir}).Start()
	bystander := harness.MakeCR(other, "bystander").Obj()
	env.Create(bystander)
	for _, chart := range all {
		env.Create(chart.cr(""), chart.cr("-late"))
		env.WaitReady(chart.cr(""), chart.cr("-late"))
	}
	env.WaitReady(bystander)
	env.WaitEvent(bystander, "Installed")
	audit := env.Audit(operator.User())

	var changes []string
	for i := range 50 {
		chart := all[random.IntN(len(all))]
		changes = append(changes, chart.name+": "+chart.change(random, 10+i))
		env.Consistently("ready", time.Duration(random.IntN(600))*time.Millisecond, func(ctx context.Context) error {
			return operator.Probe(ctx, "/readyz")
		})
	}
	t.Logf("changes: %s", strings.Join(changes, ", "))
	// A broken chart is served in its last valid version, which a restart does not know.
	for _, chart := range all {
		if chart.broken {
			chart.repair()
		}
	}
	gone := all[random.IntN(len(all))]
	gone.remove()
	left := slices.DeleteFunc(slices.Clone(all), func(c *hotChart) bool { return c == gone })
	if !slices.ContainsFunc(left, func(c *hotChart) bool { return c.exists }) {
		left[0].write(100)
	}
	var want []string
	for _, chart := range all {
		state := ": Removed; only deletions are carried out\n  custom resources left: 2."
		if chart.exists {
			state = ": Serving\n"
		}
		want = append(want, chart.kind.GroupKind().String()+state)
	}
	operator.WaitReadyz(http.StatusOK, append(want, other.GroupKind().String()+": Serving\n")...)
	waitVersions(env, all)
	for _, request := range audit.Requests() {
		if request.ObjectRef.APIGroup == other.Group && request.ObjectRef.Resource == "others" || strings.Contains(request.ObjectRef.Name, "bystander") {
			t.Errorf("request for another kind: %s", request)
		}
	}
	watches, _ := audit.WatchesAndLeases()
	for _, watch := range watches {
		if watch.ObjectRef.Resource == "others" {
			t.Errorf("watch of another kind: %s", watch)
		}
	}
	before, revisions := sortedReadyz(env, operator), revisionsOf(env, all)

	// A deletion before the restart, and one after it.
	env.Delete(gone.cr(""))
	env.WaitGone(gone.cr(""))
	operator.Stop()
	operator.Start()
	removed := gone.kind.GroupKind().String() + ": Removed; only deletions are carried out\n"
	operator.WaitReadyz(http.StatusOK, append(slices.DeleteFunc(want, func(line string) bool { return strings.HasPrefix(line, gone.kind.GroupKind().String()) }),
		removed+"  custom resources left: 1.")...)
	after := strings.Replace(sortedReadyz(env, operator), "left: 1.", "left: 2.", 1)
	if after != before {
		t.Errorf("before the restart:\n%s\nafter it:\n%s", before, after)
	}
	waitVersions(env, left)
	for name, revision := range revisionsOf(env, left) {
		if revision != revisions[name] {
			t.Errorf("%s is at %s after the restart, and was at %s", name, revision, revisions[name])
		}
	}
	env.Delete(gone.cr("-late"))
	env.WaitGone(gone.cr("-late"))
	env.WaitGone(harness.Object("v1", "ConfigMap", gone.cr("-late").GetName()))
	env.Wait("the removed kind to disappear from /readyz", func(ctx context.Context) error {
		_, text, err := operator.Readyz(ctx)
		if strings.Contains(text, removed) {
			return fmt.Errorf("it is there: %s", text)
		}
		return err
	})
}

// waitVersions waits until the custom resources of existing charts have the newest version.
func waitVersions(env *harness.Env, all []*hotChart) {
	env.T().Helper()
	for _, chart := range all {
		if !chart.exists {
			continue
		}
		for _, cr := range []*unstructured.Unstructured{chart.cr(""), chart.cr("-late")} {
			env.WaitStatus(cr, "at chart version "+chart.chartVersion(), func(status api.Status) error {
				ready := harness.Condition(status, "Ready")
				if ready == nil || ready.Reason != "Deployed" || status.Release == nil || status.Release.ChartVersion != chart.chartVersion() {
					return fmt.Errorf("not ready with chart %s", chart.chartVersion())
				}
				return nil
			})
			expectData(env.T(), env, cr.GetName(), "version", chart.chartVersion())
		}
	}
}

// revisionsOf returns the revision of each custom resource.
func revisionsOf(env *harness.Env, all []*hotChart) map[string]string {
	env.T().Helper()
	revisions := map[string]string{}
	for _, chart := range all {
		for _, cr := range []*unstructured.Unstructured{chart.cr(""), chart.cr("-late")} {
			release := env.Status(cr).Release
			revisions[cr.GetName()] = fmt.Sprintf("revision %d, chart %s", release.Revision, release.ChartVersion)
		}
	}
	return revisions
}

// TestHotFolder_VolumeIsSwapped: the kubelet updates a volume by replacing the link ..data.
// A kind without kind.yaml gets its names from the chart and the flags.
func TestHotFolder_VolumeIsSwapped(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, other := env.NewKind("Hot"), env.NewKind("Other")
	env.InstallCRD(kind)
	env.InstallCRD(other)
	charts := newFolder(t)
	version := func(target, version string) {
		charts.write("hot/"+target+"/Chart.yaml", "apiVersion: v2\nname: hot\nversion: "+version+"\n")
		charts.write("hot/"+target+"/templates/a.yaml", hotTemplate)
	}
	version("..1", "1.0.0")
	charts.link("..1", "hot/..data")
	charts.link("..data/Chart.yaml", "hot/Chart.yaml")
	charts.link("..data/templates", "hot/templates")
	operator := env.NewOperator(harness.Options{
		ChartsDir: charts.dir, Watches: env.Watches(harness.MakeEntry(other, harness.Chart("plain"))),
		Args: []string{"--charts-dir-group=" + kind.Group, "--charts-dir-version=" + kind.Version},
	}).Start()
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	expectData(t, env, "web", "version", "1.0.0")

	version("..2", "2.0.0")
	charts.link("..2", "hot/..data_tmp")
	hot := filepath.Join(charts.dir, "hot")
	if err := os.Rename(filepath.Join(hot, "..data_tmp"), filepath.Join(hot, "..data")); err != nil {
		t.Fatal(err)
	}
	swapped := time.Now()
	env.WaitRevision(web, 2)
	t.Logf("delivered after %s", time.Since(swapped))
	expectData(t, env, "web", "version", "2.0.0")

	// The volume is gone: this is no removal.
	if err := os.Rename(charts.dir, charts.dir+".gone"); err != nil {
		t.Fatal(err)
	}
	operator.WaitReadyz(http.StatusOK, kind.GroupKind().String()+": Serving\n", charts.dir+": Broken\n  read the folder of charts: ")
	late := harness.MakeCR(kind, "late").Obj()
	env.Create(late)
	env.WaitReady(late)
	if err := os.Rename(charts.dir+".gone", charts.dir); err != nil {
		t.Fatal(err)
	}
	env.Wait("the report to disappear", func(ctx context.Context) error {
		_, text, err := operator.Readyz(ctx)
		if strings.Contains(text, "broken") {
			return fmt.Errorf("it is there: %s", text)
		}
		return err
	})
}
