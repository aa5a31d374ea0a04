package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// previous is the namespace of the stored state. It is also the operator's name
// and the group of the kinds, which the releases contain.
const previous = "previous"

func previousFile(name string) string { return harness.Root("test", "e2e", "testdata", previous, name) }

// previousReleases are the releases of the state, as the previous version has
// left them.
var previousReleases = map[string]string{
	"deployed": "1 deployed",
	"several":  "1 superseded, 2 superseded, 3 deployed",
	"held":     "1 superseded, 2 superseded, 3 deployed",
	"hooked":   "1 deployed",
	"failed":   "1 deployed, 2 failed",
}

// previousState restores the stored state, or creates it.
type previousState struct {
	*harness.Env
	note, task harness.Kind
	metrics    harness.Metrics
	operator   *harness.Operator
}

func newPreviousState(t *testing.T) previousState {
	t.Helper()
	env := harness.New(t)
	env.Create(harness.Object("v1", "Namespace", previous))
	t.Cleanup(func() {
		if err := env.Typed.CoreV1().Namespaces().Delete(context.Background(), previous, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s := previousState{Env: env.In(previous), metrics: env.NewMetrics()}
	s.note, s.task = s.NewKind("Note"), s.NewKind("Task")
	s.InstallCRD(s.note)
	s.InstallCRD(s.task)
	s.operator = s.NewOperator(harness.Options{
		Watches: s.Watches(harness.MakeEntry(s.note, previousFile("note")), harness.MakeEntry(s.task, previousFile("task"))),
		Account: s.NewAccount(),
		Args:    s.metrics.Args(),
	})
	return s
}

// failing returns a custom resource whose hook fails.
func (s previousState) failing() *unstructured.Unstructured {
	return harness.MakeCR(s.task, "failed").Set("text", "two").Set("fail", true).Obj()
}

// Releases of the previous version continue unchanged: there are no new
// revisions, and the only writes are one signature for each deployed revision.
// A failed upgrade is retried in place of the failed attempt.
func TestPreviousVersion_StateIsKept(t *testing.T) {
	t.Parallel()
	s := newPreviousState(t)
	objects := s.Restore(previousFile("state.yaml"))
	custom := 0
	for _, object := range objects {
		if object.GroupVersionKind().Group == s.note.Group {
			custom++
		}
	}
	if custom != len(previousReleases) {
		t.Fatalf("%d custom resources are stored, want %d", custom, len(previousReleases))
	}
	audit := s.Audit(s.operator.User())
	s.operator.Start()
	// The first complete reconciliation may update messages in the status.
	s.Wait("a complete reconciliation of each note", func(context.Context) error {
		if done := s.metrics.Sum("chartwright_reconciles_total", map[string]string{"kind": s.note.GroupKind().String()}); done < 3 {
			return fmt.Errorf("%v reconciliations are complete", done)
		}
		return nil
	})
	s.Wait("a retry of the failed upgrade", func(context.Context) error {
		if !slices.ContainsFunc(audit.Writes(""), func(r harness.Request) bool { return r.ObjectRef.Name == "failed-before" }) {
			return errors.New("its hook was not recreated")
		}
		return nil
	})
	s.WaitCondition(s.failing(), "Ready", metav1.ConditionFalse, "UpgradeFailed")
	signed := map[string]bool{}
	for _, request := range audit.Writes("failed") {
		record := request.ObjectRef.Resource == "secrets" && request.ObjectRef.Namespace == s.Namespace
		switch {
		case request.ObjectRef.Subresource == "status", request.ObjectRef.Resource == "events":
		case strings.HasSuffix(request.ObjectRef.Name, "-signing-key") && request.Verb == "create":
		case record && request.Verb == "patch" && !signed[request.ObjectRef.Name]:
			// The previous version did not sign records.
			signed[request.ObjectRef.Name] = true
		default:
			t.Errorf("the operator wrote %s", request)
		}
	}
	for _, release := range slices.Sorted(maps.Keys(previousReleases)) {
		s.WaitRevisions(release, previousReleases[release])
	}
	for _, object := range objects {
		if strings.Contains(object.GetName(), "failed-before") || strings.Contains(object.GetName(), ".failed.v2") {
			continue
		}
		if live := s.Get(object); live.GetUID() != object.GetUID() || object.GroupVersionKind().Group == "" && live.GetGeneration() != object.GetGeneration() {
			t.Errorf("%s %s was replaced", object.GetKind(), object.GetName())
		}
	}
	held := harness.MakeCR(s.note, "held").Obj()
	if status := s.WaitReady(held); status.Release == nil || status.Release.Revision != 3 || harness.Condition(status, "Held") == nil {
		t.Errorf("the held release has status %+v", status)
	}
	expectData(t, s.Env, "held", "text", "one")

	// The releases can be edited, rolled back to a revision of the previous
	// version, and deleted.
	several := harness.MakeCR(s.note, "several").Obj()
	s.SetSpec(harness.MakeCR(s.note, "several").Set("text", "four").Obj())
	s.WaitRevision(several, 4)
	s.Annotate(several, "rollback-to", "2")
	s.WaitRevision(several, 5)
	expectData(t, s.Env, "several", "text", "two")
	hooked := harness.MakeCR(s.task, "hooked").Obj()
	s.Delete(hooked)
	s.WaitGone(hooked, harness.ConfigMap("hooked"), harness.ConfigMap("hooked-after"))
	if !slices.ContainsFunc(audit.Writes(""), func(r harness.Request) bool { return r.Verb == "create" && r.ObjectRef.Name == "hooked-after" }) {
		t.Error("the post-delete hook did not run")
	}
	s.ExpectRevisions("hooked", "")
}

// This is not a test: on request, it recreates the stored state with the
// operator under test. See testdata/previous/README.md.
func TestPreviousVersion_CreateState(t *testing.T) {
	if os.Getenv("CHARTWRIGHT_WRITE_STATE") == "" {
		t.Skip("run by make previous-state")
	}
	s := newPreviousState(t)
	s.operator.Start()
	note := func(name, text string) *unstructured.Unstructured {
		return harness.MakeCR(s.note, name).Set("text", text).Obj()
	}
	task := func(name string) *unstructured.Unstructured {
		return harness.MakeCR(s.task, name).Set("text", "one").Obj()
	}
	crs := []*unstructured.Unstructured{note("deployed", "one"), note("several", "one"), note("held", "one"), task("hooked"), task("failed")}
	s.Create(crs...)
	s.WaitReady(crs...)
	for _, name := range []string{"several", "held"} {
		s.SetSpec(note(name, "two"))
		s.WaitRevision(note(name, ""), 2)
	}
	s.SetSpec(note("several", "three"))
	s.WaitRevision(note("several", ""), 3)
	s.Annotate(note("held", ""), "rollback-to", "1")
	s.WaitRevision(note("held", ""), 3)
	s.SetSpec(s.failing())
	s.WaitCondition(s.failing(), "Ready", metav1.ConditionFalse, "UpgradeFailed")
	s.operator.Stop()
	for release, revisions := range previousReleases {
		s.ExpectRevisions(release, revisions)
	}

	ours := func(object *unstructured.Unstructured) bool {
		labels := object.GetLabels()
		return object.GroupVersionKind().Group == s.note.Group || labels["owner"] == "helm" ||
			labels[api.LabelOwnerUID] != "" || labels[api.LabelHookOwnerUID] != ""
	}
	s.Store(previousFile("state.yaml"), ours, s.note.GroupVersionKind, s.task.GroupVersionKind,
		schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
	if err := os.WriteFile(previousFile("version"), []byte(s.Version()), 0o600); err != nil {
		t.Fatal(err)
	}
}
