package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// disturbances are events that do not end the hold of a release. revision is
// the newest revision afterwards.
var disturbances = []struct {
	name     string
	revision int64
	do       func(ownedRelease)
}{
	{"a reconciliation is requested", 4, func(web ownedRelease) {
		web.annotate("reconcile-requested-at", "now")
		web.env.Wait("the request to be processed", func(context.Context) error {
			return answered(web.env.Records(web.name), api.LabelReconcileRequest)
		})
	}},
	{"force is requested", 4, func(web ownedRelease) {
		web.annotate("force", "now")
		web.env.Wait("the request to be processed", func(context.Context) error {
			return answered(web.env.Records(web.name), api.LabelForceRequest)
		})
	}},
	{"the same spec is applied again", 4, func(web ownedRelease) {
		applied := harness.MakeCR(web.kind, web.name).Set("message", "three").Obj()
		data, err := json.Marshal(applied)
		if err != nil {
			web.t.Fatal(err)
		}
		web.env.KubectlWith(string(data), "apply", "-f", "-")
		web.env.KubectlWith(string(data), "apply", "--server-side", "--force-conflicts", "-f", "-")
	}},
	{"the annotation is removed", 4, func(web ownedRelease) { web.env.Unannotate(web.cr, "rollback-to") }},
	{"an autoscaler scales", 4, func(web ownedRelease) {
		generation := web.env.Get(web.cr).GetGeneration()
		web.env.Kubectl("scale", web.kind.Resource(), web.name, "--replicas=5")
		if web.env.Get(web.cr).GetGeneration() == generation {
			web.t.Error("the custom resource was not scaled")
		}
	}},
	{"an object drifts", 4, func(web ownedRelease) {
		web.env.Patch(harness.ConfigMap(web.name), messageChanged)
		web.env.WaitEvent(web.cr, "DriftCorrected")
		waitData(web.env, web.name, "message", "one")
	}},
	{"an object is deleted", 4, func(web ownedRelease) {
		web.env.Delete(harness.ConfigMap(web.name))
		waitData(web.env, web.name, "message", "one")
	}},
	{"the status is cleared", 4, func(web ownedRelease) {
		web.env.Patch(web.cr, `[{"op": "remove", "path": "/status"}]`, "status")
		// The operator writes the status again in the next reconciliation.
		web.annotate("pause", "false")
	}},
	{"a source of values changes", 4, func(web ownedRelease) {
		web.env.Create(holding(harness.ConfigMap(web.name+"-values"), "values.yaml", "replicas: 7"))
	}},
	{"a user upgrades with helm", 6, func(web ownedRelease) {
		web.env.Helm("upgrade", web.name, harness.Chart("hooks"), "--set", "message=theirs")
	}},
	{"a user rolls back with helm", 6, func(web ownedRelease) { web.env.Helm("rollback", web.name, "2") }},
	{"an invalid request is made", 4, func(web ownedRelease) {
		web.annotate("rollback-to", "99")
		web.refused("Revision 99", "1, 2, 3, 4")
	}},
}

func TestRollback_HoldsUntilSpecEdited(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	env.Patch(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.Resource()),
		`[{"op": "add", "path": "/spec/versions/0/subresources/scale", "value": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}]`)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("hooks")).With("subresources", map[string]any{
			"scale": map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
		}).With("valuesFrom", []from{{"kind": "ConfigMap", "name": "{{ .metadata.name }}-values", "optional": true}})),
		Account: env.NewAccount(),
	}).Start()
	all := make([]ownedRelease, len(disturbances))
	for i, disturbance := range disturbances {
		t.Run("when "+disturbance.name, func(t *testing.T) {
			web := threeRevisions(env.For(t), kind, disturbance.name)
			web.annotate("rollback-to", "1")
			web.held(4, 1, "one")
			disturbance.do(web)
			fenceOf(web.env, kind)
			web.held(disturbance.revision, 1, "one")
			all[i] = web
		})
	}
	if t.Failed() {
		return
	}
	for _, how := range ends {
		t.Run("when the operator is "+how.name, func(t *testing.T) {
			env := env.For(t)
			how.end(operator)
			operator.Start()
			fenceOf(env, kind)
			for i, web := range all {
				web.t, web.env = t, env
				web.held(disturbances[i].revision, 1, "one")
			}
		})
	}
	t.Run("until the spec is edited", func(t *testing.T) {
		for i, web := range all {
			web.t, web.env = t, env.For(t)
			web.edit("next", nil)
			web.follows(disturbances[i].revision+1, "next")
		}
	})
}

// A request that cannot be fulfilled changes nothing.
func TestRollback_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := threeRevisions(env, kind, "web")
	web.edit("four", map[string]any{"post-upgrade": map[string]any{"fail": true}})
	env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
	web.edit("five", nil)
	web.follows(5, "five")
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 superseded, 4 failed, 5 deployed")
	events := 0
	for _, request := range []struct{ value, wantText string }{
		{"0", `rollback-to is "0": expected a revision, "previous" or "none"`},
		{"-1", `rollback-to is "-1": expected a revision`},
		{"99", "Revision 99 is not stored"},
		{"abc", `rollback-to is "abc": expected a revision`},
		{"4", "Revision 4 is not stored, or was never deployed"},
	} {
		audit := env.Audit(harness.SharedUser())
		web.annotate("rollback-to", request.value)
		web.refused(request.wantText, "1, 2, 3, 5")
		events++
		fenceOf(env, kind)
		web.follows(5, "five")
		for _, write := range audit.Writes("fence") {
			if write.ObjectRef.Resource == "configmaps" || write.Verb == "create" && write.ObjectRef.Resource == "secrets" {
				t.Errorf("%s: the operator wrote %v", request.value, write)
			}
		}
		if n := env.CountEvents(web.cr, "RollbackRefused"); n != events {
			t.Errorf("%s: %d events report refusals, want %d", request.value, n, events)
		}
	}

	// An edit of the spec does not repeat the request, and a valid request
	// removes the condition.
	web.edit("six", nil)
	web.follows(6, "six")
	fenceOf(env, kind)
	if n := env.CountEvents(web.cr, "RollbackRefused"); n != events {
		t.Errorf("after an edit %d events report refusals, want %d", n, events)
	}
	web.annotate("rollback-to", "3")
	if status := waitHeld(env, web.cr, 7, 3); harness.Condition(status, "RollbackRefused") != nil {
		t.Errorf("condition RollbackRefused remains: %+v", status.Conditions)
	}
}

// TestRollback_Withdrawn removes the annotation of a request that was refused, and of one that
// waits for the end of a pause.
func TestRollback_Withdrawn(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := threeRevisions(env, kind, "web")
	c := callerOf(env, kind)
	web.annotate("rollback-to", "99")
	web.refused("Revision 99 is not stored", "1, 2, 3")
	c.does([]string{"check", kind.Resource()}, "RollbackRefused")
	withdraw := func() { env.Kubectl("annotate", kind.Resource(), web.name, api.AnnotationRollbackTo+"-") }
	withdraw()
	env.WaitStatus(web.cr, "without a request", func(status api.Status) error {
		if refused := harness.Condition(status, "RollbackRefused"); refused != nil || status.Answered != nil {
			return fmt.Errorf("RollbackRefused is %+v, answered are %+v", refused, status.Answered)
		}
		return nil
	})
	if result := c.does([]string{"check", kind.Resource()}, "1 checked, 0 failed, 0 pending"); strings.Contains(result.Stdout, "Info") {
		t.Errorf("check prints\n%s", result.Stdout)
	}

	c.does([]string{"pause", kind.Resource() + "/web", "--wait"})
	c.does([]string{"rollback", kind.Resource() + "/web", "1"}, "requested")
	fenceOf(env, kind)
	withdraw()
	c.does([]string{"resume", kind.Resource() + "/web", "--wait"})
	fenceOf(env, kind)
	web.follows(3, "three")
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 deployed")
}

func TestRollback_PreviousOfFirstRevisionIsRefused(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := ownedRelease{t, env, kind, harness.MakeCR(kind, "web").Set("message", "one").Annotate("rollback-to", "previous").Obj(), "web"}
	env.Create(web.cr)
	web.refused("No earlier revision was ever deployed", "1")
	web.follows(1, "one")
}

// refused waits until the newest request is refused.
func (r ownedRelease) refused(wantText, available string) {
	r.t.Helper()
	r.env.WaitStatus(r.cr, "refused a rollback", func(status api.Status) error {
		return refusal(status, wantText, available)
	})
	if event := r.env.WaitEvent(r.cr, "RollbackRefused"); event.Type != "Warning" {
		r.t.Errorf("event is %+v", event)
	}
}

func refusal(status api.Status, wantText, available string) error {
	refused := harness.Condition(status, "RollbackRefused")
	if refused == nil || !strings.Contains(refused.Message, wantText) || !strings.HasSuffix(refused.Message, "Available revisions: "+available) {
		return fmt.Errorf("no refusal with %q and available revisions %s", wantText, available)
	}
	return nil
}

// answered returns an error unless a request was processed: then its label is
// on the newest record.
func answered(records []corev1.Secret, label string) error {
	if newest := records[len(records)-1]; newest.Labels[label] == "" {
		return fmt.Errorf("labels of the newest record: %v", newest.Labels)
	}
	return nil
}
