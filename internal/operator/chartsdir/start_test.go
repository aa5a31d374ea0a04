package chartsdir

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/testenv"
)

// TestStart_FollowsFiles starts a Folder on a real file system: added and changed charts are
// served, and nothing is left running.
func TestStart_FollowsFiles(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := newDisk(t)
	d.chart("first", "First", "1.0.0")
	opened, err := Open(d.dir, catalog.FolderDefaults{})
	if err != nil {
		t.Fatal(err)
	}
	opened.Serve(d.set)
	changes := d.set.Changes()
	broken := make(chan []catalog.Broken, 10)
	opened.Report(func(now []catalog.Broken) { broken <- now })
	<-broken
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- opened.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	next := func(what string) {
		t.Helper()
		testenv.Receive(t, what, changes)
	}
	next("a folder that was new at start")
	<-opened.Loaded()
	d.chart("web", "Web", "1.0.0")
	next("an added folder")
	d.write("web/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	next("a changed file")
	d.expect("at the end", "First 1.0.0, Web 1.0.0")
	d.write("web/Chart.yaml", "nonsense: [")
	if now := testenv.Receive(t, "the report of the broken folder", broken); len(now) != 1 {
		t.Errorf("broken: %v", now)
	}
}
