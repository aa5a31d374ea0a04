package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// reports is a kind whose releases have widgets. The test acts as the controller
// of the widgets.
type reports struct {
	*harness.Env
	kind, widget harness.Kind
}

func newReports(t *testing.T, kind, widget harness.Kind) reports {
	t.Helper()
	env := harness.New(t)
	return reports{Env: env, kind: env.Use(kind), widget: env.Use(widget)}
}

// cr returns a builder for a custom resource with a widget.
func (r reports) cr(name, size string) harness.CR {
	return harness.MakeCR(r.kind, name).Set("group", r.widget.Group).Set("widgets.a.size", size)
}

func (r reports) widgetOf(name string) *unstructured.Unstructured {
	return harness.Object(r.widget.GroupVersion().String(), "Widget", name+"-a")
}

// report writes the status of a widget once the widget has the given
// generation.
func (r reports) report(name string, generation int64, status any) {
	r.T().Helper()
	widget := r.widgetOf(name)
	r.Wait(fmt.Sprintf("generation %d of widget %s", generation, name), func(ctx context.Context) error {
		live, err := r.At(widget).Get(ctx, widget.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if live.GetGeneration() != generation {
			return fmt.Errorf("the generation is %d", live.GetGeneration())
		}
		return nil
	})
	data, err := json.Marshal(status)
	if err != nil {
		r.T().Fatal(err)
	}
	r.Patch(widget, `[{"op": "add", "path": "/status", "value": `+string(data)+`}]`, "status")
}

// waitMessage waits until Ready has a status and a message that contains the text.
func (r reports) waitMessage(cr *unstructured.Unstructured, ready metav1.ConditionStatus, text string) {
	r.T().Helper()
	r.Wait(fmt.Sprintf("Ready=%s: %s", ready, text), func(context.Context) error {
		return r.checkReady(cr, ready, text)
	})
}

func (r reports) checkReady(cr *unstructured.Unstructured, ready metav1.ConditionStatus, text string) error {
	c := harness.Condition(r.Status(cr), "Ready")
	if c == nil || c.Status != ready || !strings.Contains(c.Message, text) {
		return fmt.Errorf("Ready is %+v", c)
	}
	return nil
}

// unharmed returns an error if a release is stalled or was rolled back.
func (r reports) unharmed(cr *unstructured.Unstructured) error {
	status := r.Status(cr)
	switch {
	case harness.Condition(status, "Stalled") != nil:
		return errors.New("the custom resource is Stalled")
	case harness.Condition(status, "Held") != nil:
		return errors.New("the release was rolled back")
	default:
		return nil
	}
}

// TestHealth_UnusualStatusIsNotRolledBack: an upgrade is not rolled back if
// observedGeneration of an object is a string, as Argo Rollouts write it, or if
// its conditions are malformed.
func TestHealth_UnusualStatusIsNotRolledBack(t *testing.T) {
	t.Parallel()
	r := newReports(t, reportsRolledBack, widgetKind)
	for name, status := range map[string]func(generation int64) any{
		"text-generation": func(g int64) any {
			return map[string]any{"observedGeneration": strconv.FormatInt(g, 10), "phase": "Healthy"}
		},
		"map-conditions":  func(int64) any { return map[string]any{"conditions": map[string]any{"Ready": "True"}} },
		"text-conditions": func(int64) any { return map[string]any{"conditions": "none"} },
		"list-of-texts":   func(int64) any { return map[string]any{"conditions": []any{"Ready"}} },
		"boolean-condition": func(int64) any {
			return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": true}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reports{Env: r.For(t), kind: r.kind, widget: r.widget}
			cr := r.cr(name, "small").Obj()
			r.Create(cr)
			r.report(name, 1, status(1))
			r.WaitReady(cr)
			r.SetSpec(r.cr(name, "large").Obj())
			r.report(name, 2, status(2))
			r.WaitRevision(cr, 2)
			r.WaitReady(cr)
			r.Consistently("no rollback after the deadline", 4*time.Second, func(context.Context) error { return r.unharmed(cr) })
		})
	}
}

// TestHealth_WithoutReport: the operator waits for a missing status as long as
// the controller reports on other objects of the kind, and then never fails. If
// the controller reports on no object, the operator waits for 60 seconds.
func TestHealth_WithoutReport(t *testing.T) {
	t.Parallel()
	r := newReports(t, reportsRolledBack, widgetWithoutReports)
	first := r.cr("first", "small").Obj()
	r.Create(first)
	r.waitMessage(first, metav1.ConditionFalse, "no status reported by the controller yet")
	began := r.Get(r.widgetOf("first")).GetCreationTimestamp()
	r.waitMessage(first, metav1.ConditionTrue, "assumed ready: no controller reported a status within 60 seconds")
	if waited := time.Since(began.Time); waited < 59*time.Second {
		t.Errorf("ready after only %s", waited)
	}
	if err := r.unharmed(first); err != nil {
		t.Error(err)
	}

	// From now on, a controller reports on other objects.
	second := r.cr("second", "small").Obj()
	r.Create(second)
	r.report("second", 1, map[string]any{"phase": "Up"})
	r.WaitReady(second)
	r.waitMessage(first, metav1.ConditionFalse, "although it reports on other objects of this kind")
	r.Consistently("neither Stalled nor rolled back", 5*time.Second, func(context.Context) error {
		return errors.Join(r.unharmed(first), r.checkReady(first, metav1.ConditionFalse, "although it reports on other objects"))
	})
	r.report("first", 1, map[string]any{"phase": "Up"})
	r.WaitReady(first)
}

// TestHealth_KindWithoutStatus: an object of a kind without a status
// subresource is ready immediately.
func TestHealth_KindWithoutStatus(t *testing.T) {
	t.Parallel()
	r := newReports(t, reportsKind, widgetWithoutStatus)
	cr := r.cr("web", "small").Obj()
	r.Create(cr)
	r.WaitReady(cr)
}

// TestHealth_RuleGatesReady: a health rule of the watches entry decides whether
// an object is ready, and provides the message.
func TestHealth_RuleGatesReady(t *testing.T) {
	t.Parallel()
	r := newReports(t, reportsByRule, widgetKind)
	cr := r.cr("web", "small").Set("widgets.a.wanted", 3).Obj()
	r.Create(cr)
	r.waitMessage(cr, metav1.ConditionFalse, "cannot evaluate ready yet: no such key: status")
	r.Consistently("not Stalled after the deadline", 4*time.Second, func(context.Context) error { return r.unharmed(cr) })
	// The object is ready by every convention, but not by the rule.
	r.report("web", 1, map[string]any{"served": 1, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	r.waitMessage(cr, metav1.ConditionFalse, "it serves 1 of 3")
	r.report("web", 1, map[string]any{"served": 3})
	r.WaitReady(cr)
	r.report("web", 1, map[string]any{"served": 3, "broken": true})
	waitNotReady(r.Env, cr, "ObjectFailed", "it serves 3 of 3")
	r.report("web", 1, map[string]any{"served": 4, "broken": false})
	r.WaitReady(cr)
}

// TestHealth_ForeignConditions: conditions and phases of a kind that the
// operator does not know determine the state of the release.
func TestHealth_ForeignConditions(t *testing.T) {
	t.Parallel()
	r := newReports(t, reportsKind, widgetKind)
	condition := func(fields map[string]any) any { return map[string]any{"conditions": []any{fields}} }
	for _, test := range []struct {
		name, reason, checkReady string
		status                   any
	}{
		{"old-condition", "Progressing", "generation 0, want 1", condition(map[string]any{"type": "Ready", "status": "True", "observedGeneration": 0})},
		{"failed-condition", "ObjectFailed", "it broke", condition(map[string]any{"type": "Failed", "status": "True", "reason": "Broken", "message": "it broke"})},
		{"degraded", "Progressing", "one of two", condition(map[string]any{"type": "Degraded", "status": "True", "message": "one of two"})},
		{"not-available", "Progressing", "no endpoints", condition(map[string]any{"type": "Available", "status": "False", "message": "no endpoints"})},
		{"not-synced", "Progressing", "access denied", condition(map[string]any{"type": "Synced", "status": "False", "message": "access denied"})},
		{"failed-phase", "ObjectFailed", "status.phase is Failed", map[string]any{"phase": "Failed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := reports{Env: r.For(t), kind: r.kind, widget: r.widget}
			cr := r.cr(test.name, "small").Obj()
			r.Create(cr)
			r.report(test.name, 1, test.status)
			waitNotReady(r.Env, cr, test.reason, test.checkReady)
			r.report(test.name, 1, condition(map[string]any{"type": "Ready", "status": "True", "observedGeneration": 1}))
			r.WaitReady(cr)
		})
	}
}

// A claim without a volume is healthy after a while only if it waits for a pod.
func TestHealth_Claims(t *testing.T) {
	t.Parallel()
	r := newReports(t, reportsRolledBack, widgetKind)
	class := func(name string, mode storagev1.VolumeBindingMode) string {
		name = r.Namespace + "-" + name
		classes := r.Typed.StorageV1().StorageClasses()
		_, err := classes.Create(t.Context(), &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.com/nobody", VolumeBindingMode: &mode,
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = classes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
		return name
	}
	late, early := class("late", storagev1.VolumeBindingWaitForFirstConsumer), class("early", storagev1.VolumeBindingImmediate)

	unused := harness.MakeCR(r.kind, "unused").Set("claimOfClass", late).Obj()
	unbound := harness.MakeCR(r.kind, "unbound").Set("claimOfClass", early).Obj()
	r.Create(unused, unbound)
	r.waitMessage(unused, metav1.ConditionFalse, "provisioning starts when a pod uses the claim")
	waitNotReady(r.Env, unbound, "ProgressDeadlineExceeded", "PVC is not Bound")
	r.waitMessage(unused, metav1.ConditionTrue, "the claim gets its volume when a pod uses it")
	waitNotReady(r.Env, unbound, "ProgressDeadlineExceeded", "PVC is not Bound")
}

// TestHealth_Workloads: built-in kinds that wait for a user or for a pod.
func TestHealth_Workloads(t *testing.T) {
	t.Parallel()
	r := newReports(t, reportsRolledBackLate, widgetKind)
	t.Run("a suspended Job", func(t *testing.T) {
		r := reports{Env: r.For(t), kind: r.kind}
		cr := harness.MakeCR(r.kind, "suspended").Set("suspendedJob", true).Obj()
		r.Create(cr)
		r.WaitReady(cr)
		r.waitMessage(cr, metav1.ConditionTrue, "suspended by spec.suspend")
	})
	t.Run("a StatefulSet whose pods the user replaces", func(t *testing.T) {
		r := reports{Env: r.For(t), kind: r.kind}
		cr := harness.MakeCR(r.kind, "manual").Set("onDelete", "registry.example/main:1").Obj()
		r.Create(cr)
		r.WaitReady(cr)
		r.SetSpec(harness.MakeCR(r.kind, "manual").Set("onDelete", "registry.example/main:2").Obj())
		r.waitMessage(cr, metav1.ConditionFalse, "1 of 1 pods run an older revision")
		r.Consistently("neither Stalled nor rolled back after the deadline", 17*time.Second, func(context.Context) error { return r.unharmed(cr) })
		r.Delete(harness.Object("v1", "Pod", "manual-0"))
		r.WaitReady(cr)
		if status := r.Status(cr); status.Release == nil || status.Release.Revision != 2 || status.Release.Status != api.StatusDeployed {
			t.Errorf("the release is %+v", status.Release)
		}
	})
}
