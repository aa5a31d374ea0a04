package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Namespaces of the stored states. Each is also the name of the operator and the
// group of the kinds, which the releases contain, and the name of the file.
const (
	// previous is the state that the previous version leaves.
	previous = "previous"
	// downgraded is the state that the previous version leaves after it has replaced
	// the current version.
	downgraded = "downgraded"
)

func previousFile(name string) string {
	return harness.Root("test", "e2e", "testdata", "previous", name)
}

// previousReleases are the releases of the state previous, and downgradedReleases
// those of the state downgraded.
var (
	previousReleases = map[string]string{
		"deployed": "1 deployed",
		"several":  "1 superseded, 2 superseded, 3 deployed",
		"held":     "1 superseded, 2 superseded, 3 deployed",
		"hooked":   "1 deployed",
		"failed":   "1 deployed, 2 failed",
	}
	downgradedReleases = map[string]string{
		"signed":   "1 deployed",
		"held":     "1 superseded, 2 superseded, 3 deployed",
		"held-new": "1 superseded, 2 superseded, 3 deployed",
		// The current version installed it, and the previous version upgraded it.
		"edited": "1 superseded, 2 deployed",
	}
)

// previousState restores a stored state, or creates it.
type previousState struct {
	*harness.Env
	note, task harness.Kind
	watches    string
	metrics    harness.Metrics
}

func newPreviousState(t *testing.T, namespace string) previousState {
	t.Helper()
	env := harness.New(t)
	env.Create(harness.Object("v1", "Namespace", namespace))
	t.Cleanup(func() {
		if err := env.Typed.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s := previousState{Env: env.In(namespace), metrics: env.NewMetrics()}
	s.note, s.task = s.NewKind("Note"), s.NewKind("Task")
	s.InstallCRD(s.note)
	s.InstallCRD(s.task)
	s.useKnownKey()
	s.watches = s.Watches(harness.MakeEntry(s.note, previousFile("note")), harness.MakeEntry(s.task, previousFile("task")))
	return s
}

// newOperator prepares an operator of the given program, or of the program under
// test. It has an account of its own, so that the audit log distinguishes versions.
func (s previousState) newOperator(program string) *harness.Operator {
	s.T().Helper()
	return s.NewOperator(harness.Options{Program: program, Watches: s.watches, Account: s.NewAccount(), Args: s.metrics.Args()})
}

var knownKey = bytes.Repeat([]byte("k"), signing.MinKey)

// useKnownKey creates the signing key with which the states are signed.
func (s previousState) useKnownKey() {
	s.T().Helper()
	name := harness.SigningKey(s.Namespace)
	key := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelSigningKey: s.Namespace}},
		Data:       map[string][]byte{"current": knownKey},
	}
	if _, err := s.Typed.CoreV1().Secrets(harness.SystemNamespace).Create(s.T().Context(), key, metav1.CreateOptions{}); err != nil {
		s.T().Fatal(err)
	}
}

// expectValidSignatures checks that the signatures of restored records are valid.
// Otherwise the operator would use nothing from these records.
func (s previousState) expectValidSignatures(releases map[string]string) {
	s.T().Helper()
	var keys signing.Keys
	if err := keys.Set(knownKey, nil); err != nil {
		s.T().Fatal(err)
	}
	valid := 0
	for name := range releases {
		records := s.Records(name)
		for i := range records {
			record := &records[i]
			signature := record.Labels[api.LabelSignature]
			content, err := release.Decode(record)
			if err == nil {
				err = keys.Verify(signature, release.SignedContent(s.Namespace, content))
			}
			if err != nil {
				s.T().Errorf("record %s: %v", record.Name, err)
				continue
			}
			valid++
		}
	}
	if valid == 0 {
		s.T().Error("no record has a valid signature")
	}
}

// waitReconciled waits for complete reconciliations of the notes by an operator
// that has just started. They may update messages in the status.
func (s previousState) waitReconciled(notes float64) {
	s.T().Helper()
	s.Wait("a complete reconciliation of each note", func(context.Context) error {
		if done := s.metrics.Sum("chartwright_reconciles_total", map[string]string{"kind": s.note.GroupKind().String()}); done < notes {
			return fmt.Errorf("%v reconciliations are complete", done)
		}
		return nil
	})
}

// expectOnlyReports fails the test if an operator wrote anything except statuses and
// events. It ignores the objects whose names contain a text of except.
func (s previousState) expectOnlyReports(audit *harness.Audit, except string) {
	s.T().Helper()
	for _, request := range audit.Writes(except) {
		if request.ObjectRef.Subresource != "status" && request.ObjectRef.Resource != "events" {
			s.T().Errorf("the operator wrote %s", request)
		}
	}
}

// expectHeld checks that a release stays at the text of its first revision.
func (s previousState) expectHeld(name string) {
	s.T().Helper()
	if status := s.WaitReady(harness.MakeCR(s.note, name).Obj()); status.Release == nil || status.Release.Revision != 3 || harness.Condition(status, "Held") == nil {
		s.T().Errorf("release %s has status %+v", name, status)
	}
	expectData(s.T(), s.Env, name, "text", "one")
}

func (s previousState) waitAllRevisions(releases map[string]string) {
	s.T().Helper()
	for _, name := range slices.Sorted(maps.Keys(releases)) {
		s.WaitRevisions(name, releases[name])
	}
}

// expectSameObjects checks that no restored object was replaced, and that no managed
// resource was changed, except those whose name contains a text of except.
func (s previousState) expectSameObjects(objects []*unstructured.Unstructured, except ...string) {
	s.T().Helper()
	for _, object := range objects {
		if slices.ContainsFunc(except, func(text string) bool { return strings.Contains(object.GetName(), text) }) {
			continue
		}
		if live := s.Get(object); live.GetUID() != object.GetUID() || object.GroupVersionKind().Group == "" && live.GetGeneration() != object.GetGeneration() {
			s.T().Errorf("%s %s was replaced", object.GetKind(), object.GetName())
		}
	}
}

// failing returns a custom resource whose hook fails.
func (s previousState) failing() *unstructured.Unstructured {
	return harness.MakeCR(s.task, "failed").Set("text", "two").Set("fail", true).Obj()
}

// Releases of the previous version continue unchanged: there are no new revisions, and
// nothing is written. A failed upgrade is retried in place of the failed attempt.
func TestPreviousVersion_StateIsKept(t *testing.T) {
	t.Parallel()
	s := newPreviousState(t, previous)
	objects := s.Restore(previousFile("previous.yaml"))
	s.expectValidSignatures(previousReleases)
	custom := 0
	for _, object := range objects {
		if object.GroupVersionKind().Group == s.note.Group {
			custom++
		}
	}
	if custom != len(previousReleases) {
		t.Fatalf("%d custom resources are stored, want %d", custom, len(previousReleases))
	}
	operator := s.newOperator("")
	audit := s.Audit(operator.User())
	operator.Start()
	s.waitReconciled(3)
	s.Wait("a retry of the failed upgrade", func(context.Context) error {
		if !slices.ContainsFunc(audit.Writes(""), func(r harness.Request) bool { return r.ObjectRef.Name == "failed-before" }) {
			return errors.New("its hook was not recreated")
		}
		return nil
	})
	s.WaitCondition(s.failing(), "Ready", metav1.ConditionFalse, "UpgradeFailed")
	s.expectOnlyReports(audit, "failed")
	s.waitAllRevisions(previousReleases)
	s.expectSameObjects(objects, "failed-before", ".failed.v2")
	s.expectHeld("held")

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

// An upgrade after a downgrade creates no revision either, and the signatures are still
// valid.
func TestPreviousVersion_StateAfterDowngradeIsKept(t *testing.T) {
	t.Parallel()
	s := newPreviousState(t, downgraded)
	objects := s.Restore(previousFile("downgraded.yaml"))
	s.expectValidSignatures(downgradedReleases)
	s.expectKeptAfterDowngrade(objects)
}

// expectKeptAfterDowngrade starts the current version on the state downgraded.
func (s previousState) expectKeptAfterDowngrade(objects []*unstructured.Unstructured) {
	s.T().Helper()
	operator := s.newOperator("")
	audit := s.Audit(operator.User())
	operator.Start()
	s.waitReconciled(float64(len(downgradedReleases)))
	s.expectOnlyReports(audit, "")
	s.waitAllRevisions(downgradedReleases)
	s.expectSameObjects(objects)
	s.expectHeld("held")
	s.expectHeld("held-new")

	// The current version installed this revision before the downgrade.
	edited := harness.MakeCR(s.note, "edited").Obj()
	s.Annotate(edited, "rollback-to", "1")
	s.WaitRevision(edited, 3)
	expectData(s.T(), s.Env, "edited", "text", "one")
	s.SetSpec(harness.MakeCR(s.note, "held-new").Set("text", "three").Obj())
	s.WaitRevision(harness.MakeCR(s.note, "held-new").Obj(), 4)
	expectData(s.T(), s.Env, "held-new", "text", "three")
	operator.Stop()
}
