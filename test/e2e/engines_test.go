package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// otherEngine returns the operator with the other major version of Helm.
func otherEngine(t *testing.T) string {
	t.Helper()
	program := os.Getenv("CHARTWRIGHT_OTHER_ENGINE")
	if program == "" {
		t.Skip("part of make check-long (test-engines)")
	}
	return program
}

// fleet is the custom resources of one operator after the other.
type fleet struct {
	*harness.Env
	note, task, web harness.Kind
	watches         string
	metrics         harness.Metrics
}

// Numbers of releases of each sort, 300 together.
const (
	fleetNotes, fleetHeld, fleetTasks, fleetMended, fleetWebs = 60, 60, 80, 40, 60
)

func newFleet(t *testing.T) fleet {
	t.Helper()
	env := harness.New(t)
	f := fleet{Env: env, metrics: env.NewMetrics()}
	f.note, f.task, f.web = f.NewKind("Note"), f.NewKind("Task"), f.NewKind("Web")
	for _, kind := range []harness.Kind{f.note, f.task, f.web} {
		f.InstallCRD(kind)
	}
	f.watches = f.Watches(
		harness.MakeEntry(f.note, previousFile("note")), harness.MakeEntry(f.task, previousFile("task")),
		harness.MakeEntry(f.web, harness.Root("charts", "podset")),
	)
	return f
}

func (f fleet) start(program string) (*harness.Operator, *harness.Audit) {
	f.T().Helper()
	operator := f.NewOperator(harness.Options{Program: program, Watches: f.watches, Account: f.NewAccount(), Args: f.metrics.Args()})
	audit := f.Audit(operator.User())
	return operator.Start(), audit
}

func (f fleet) named(kind harness.Kind, prefix string, count int) []*unstructured.Unstructured {
	list := make([]*unstructured.Unstructured, count)
	for i := range list {
		cr := harness.MakeCR(kind, fmt.Sprintf("%s-%d", prefix, i))
		if kind.Kind != f.web.Kind {
			cr = cr.Set("text", "one")
		}
		list[i] = cr.Obj()
	}
	return list
}

// create creates all custom resources: notes with one revision, held ones with three, tasks with
// hooks, tasks whose second revision failed, and releases with pods.
func (f fleet) create() {
	f.T().Helper()
	held, mended := f.named(f.note, "held", fleetHeld), f.named(f.task, "mended", fleetMended)
	all := slices.Concat(f.named(f.note, "note", fleetNotes), held, f.named(f.task, "task", fleetTasks), mended, f.named(f.web, "web", fleetWebs))
	f.Create(all...)
	f.WaitReady(all...)
	for _, cr := range held {
		f.SetSpec(harness.MakeCR(f.note, cr.GetName()).Set("text", "two").Obj())
	}
	for _, cr := range mended {
		f.SetSpec(harness.MakeCR(f.task, cr.GetName()).Set("text", "two").Set("fail", true).Obj())
	}
	for _, cr := range held {
		f.WaitRevision(cr, 2)
		f.Annotate(cr, "rollback-to", "1")
	}
	for _, cr := range mended {
		f.WaitCondition(cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
		f.SetSpec(harness.MakeCR(f.task, cr.GetName()).Set("text", "three").Obj())
	}
	for _, cr := range held {
		f.WaitRevision(cr, 3)
	}
	f.WaitReady(all...)
}

// versions returns the resource versions of the records, and of all objects and pods, by UID.
func (f fleet) versions() map[types.UID]string {
	f.T().Helper()
	versions := map[types.UID]string{}
	for _, of := range [][2]string{{"v1", "Secret"}, {"v1", "ConfigMap"}, {"v1", "ServiceAccount"}, {"v1", "Service"}, {"v1", "Pod"}, {"apps/v1", "Deployment"}, {"batch/v1", "Job"}} {
		list, err := f.At(harness.Object(of[0], of[1], "any")).List(f.T().Context(), metav1.ListOptions{})
		if err != nil {
			f.T().Fatal(err)
		}
		for _, object := range list.Items {
			versions[object.GetUID()] = of[1] + " " + object.GetName() + " " + object.GetResourceVersion()
		}
	}
	return versions
}

// handOver runs an operator until it has reconciled all custom resources. It checks that the
// operator only reports.
func (f fleet) handOver(program string, before map[types.UID]string) {
	f.T().Helper()
	operator, audit := f.start(program)
	for kind, count := range map[harness.Kind]int{f.note: fleetNotes + fleetHeld, f.task: fleetTasks + fleetMended, f.web: fleetWebs} {
		f.Wait("reconciliations of all custom resources", func(context.Context) error {
			if done := f.metrics.Sum("chartwright_reconciles_total", map[string]string{"kind": kind.GroupKind().String()}); done < float64(count) {
				return fmt.Errorf("%v of %d %s are reconciled", done, count, kind.Kind)
			}
			return nil
		})
	}
	operator.Stop()
	for _, request := range audit.Writes("") {
		if request.ObjectRef.Resource != "events" {
			f.T().Errorf("the operator wrote %s", request)
		}
	}
	if diff := cmp.Diff(before, f.versions()); diff != "" {
		f.T().Errorf("objects changed:\n%s", diff)
	}
}

// TestEngines_HandOver: the releases of one major version of Helm continue with the other: no
// revision, no record, no object and no pod changes. Each carries out what users request of the
// releases of the other.
func TestEngines_HandOver(t *testing.T) {
	t.Parallel()
	other := otherEngine(t)
	f := newFleet(t)
	operator, _ := f.start("")
	f.create()
	operator.Stop()
	before := f.versions()
	for _, program := range []string{other, ""} {
		f.handOver(program, before)
	}
	for i, program := range []string{other, "", other} {
		operator, _ := f.start(program)
		f.request(i)
		operator.Stop()
	}
}

// request edits, rolls back, ends a hold of and deletes releases of each sort.
func (f fleet) request(round int) {
	f.T().Helper()
	name := func(prefix string) string { return fmt.Sprintf("%s-%d", prefix, round) }
	note, held := harness.MakeCR(f.note, name("note")), harness.MakeCR(f.note, name("held"))
	f.SetSpec(note.Set("text", "edited").Obj())
	f.WaitRevision(note.Obj(), 2)
	f.Annotate(note.Obj(), "rollback-to", "1")
	f.WaitRevision(note.Obj(), 3)
	expectData(f.T(), f.Env, note.Obj().GetName(), "text", "one")
	f.SetSpec(held.Set("text", "released").Obj())
	f.WaitRevision(held.Obj(), 4)
	expectData(f.T(), f.Env, held.Obj().GetName(), "text", "released")
	// The next round continues with the release that this round has changed.
	f.SetSpec(harness.MakeCR(f.note, "note-59").Set("text", strconv.Itoa(round)).Obj())
	f.WaitRevision(harness.MakeCR(f.note, "note-59").Obj(), int64(2+round))
	task, web := harness.MakeCR(f.task, name("task")).Obj(), harness.MakeCR(f.web, name("web")).Obj()
	f.Delete(task, web)
	f.WaitGone(task, web, harness.ConfigMap(task.GetName()+"-after"))
	f.ExpectRevisions(task.GetName(), "")
	if len(f.Records(web.GetName())) > 0 {
		f.T().Errorf("records of %s remain", web.GetName())
	}
}

// TestEngines_CommandLines: the helm CLI of both major versions reads, rolls back, upgrades and
// uninstalls the releases of both operators, and these continue the releases of the CLI.
func TestEngines_CommandLines(t *testing.T) {
	t.Parallel()
	other := otherEngine(t)
	env := harness.New(t)
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	watches := env.Watches(harness.MakeEntry(kind, harness.Chart("hooks")))
	for name, program := range map[string]string{"default": "", "other": other} {
		start := func() *harness.Operator {
			return env.NewOperator(harness.Options{Program: program, Watches: watches, Account: env.NewAccount()}).Start()
		}
		for version, helm := range map[string]func(...string) (string, error){"helm3": env.TryHelm, "helm4": env.TryHelm4} {
			release := name + "-" + version
			run := func(args ...string) string {
				t.Helper()
				out, err := helm(args...)
				if err != nil {
					t.Fatalf("%s: %v", release, err)
				}
				return out
			}
			message := func(text string) *unstructured.Unstructured {
				return harness.MakeCR(kind, release).Set("message", text).Set("hooks", map[string]any{"pre-rollback": map[string]any{}, "post-delete": map[string]any{}}).Obj()
			}
			operator := start()
			cr := message("one")
			env.Create(cr)
			env.WaitReady(cr)
			env.SetSpec(message("two"))
			env.WaitRevision(cr, 2)
			operator.Stop()

			for _, part := range []string{"manifest", "hooks", "values", "notes", "metadata", "all"} {
				if out := run("get", part, release); part != "notes" && !strings.Contains(out, "two") && part != "metadata" {
					t.Errorf("%s: helm get %s:\n%s", release, part, out)
				}
			}
			var force []string
			if version == "helm4" {
				// The records request server-side apply, and the operator owns the fields.
				force = []string{"--force-conflicts"}
			}
			run(append([]string{"rollback", release, "1"}, force...)...)
			expectData(t, env, release, "message", "one")
			run(append([]string{"upgrade", release, harness.Chart("hooks"), "--reuse-values", "--set", "message=theirs"}, force...)...)
			expectData(t, env, release, "message", "theirs")
			env.ExpectRevisions(release, "1 superseded, 2 superseded, 3 superseded, 4 deployed")

			operator = start()
			waitData(env, release, "message", "two")
			env.SetSpec(message("three"))
			waitData(env, release, "message", "three")
			env.WaitReady(cr)
			operator.Stop()

			run("uninstall", release)
			env.WaitGone(harness.ConfigMap(release))
			env.Get(harness.Object("batch/v1", "Job", release+"-post-delete"))
			if records := env.Records(release); len(records) > 0 {
				t.Errorf("%d records of %s remain", len(records), release)
			}
			operator = start()
			env.Delete(cr)
			env.WaitGone(cr)
			operator.Stop()
		}
	}
}
