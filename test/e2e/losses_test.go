package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// losses is a kind whose chart has objects with data.
type losses struct {
	*harness.Env
	kind harness.Kind
}

// lossesAllowed are additional keys of an entry for the chart "losses".
var lossesAllowed = harness.Entry{"allow": map[string]any{
	"otherNamespaces": true,
	"clusterScoped":   []string{"CustomResourceDefinition.apiextensions.k8s.io", "Namespace"},
}}

// useLosses returns one of the kinds that tests share.
func useLosses(t *testing.T, kind harness.Kind) losses {
	t.Helper()
	env := harness.New(t)
	return losses{env, env.Use(kind)}
}

// cr returns a custom resource with values.
func (l losses) cr(name string, values map[string]any) *unstructured.Unstructured {
	cr := harness.MakeCR(l.kind, name)
	for path, value := range values {
		cr = cr.Set(path, value)
	}
	return cr.Obj()
}

// approve approves the plan that waits, which must contain what.
func approve(env *harness.Env, cr *unstructured.Unstructured, what string) {
	env.T().Helper()
	env.Annotate(cr, "approve", waitApproval(env, cr, what).Digest)
}

// waitApproval waits until a custom resource waits for an approval, and returns the
// plan. The message must name the object, the digest and the command.
func waitApproval(env *harness.Env, cr *unstructured.Unstructured, object string) *api.PlanStatus {
	env.T().Helper()
	status := env.WaitStatus(cr, "an approval of "+object, func(status api.Status) error {
		ready := harness.Condition(status, api.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != api.ReasonApprovalRequired || status.Plan == nil {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
	message := harness.Condition(status, api.ConditionReady).Message
	for _, want := range []string{object, status.Plan.Digest, "kubectl chartwright approve " + strings.ToLower(cr.GetKind()) + "." + cr.GroupVersionKind().Group + "/" + cr.GetName()} {
		if !strings.Contains(message, want) {
			env.T().Errorf("the message of Ready does not contain %q: %s", want, message)
		}
	}
	return status.Plan
}

// expectUnwritten checks that the operator has written nothing about a custom resource
// but its status.
func expectUnwritten(t *testing.T, audit *harness.Audit, name string) {
	t.Helper()
	for _, write := range audit.Writes("") {
		own := write.ObjectRef.Subresource == "status" || write.ObjectRef.Resource == "events"
		if !own && strings.Contains(write.ObjectRef.Name, name) && !strings.Contains(write.RequestURI, "dryRun=All") {
			t.Errorf("the operator wrote before the approval: %s", write)
		}
	}
}

// Every action that loses data is stopped before any write, and carried out after the
// approval.
func TestGuard_StopsLossesUntilApproved(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	elsewhere, extra := l.NewNamespace("elsewhere"), l.Namespace+"-extra"
	claim := func(name string) *unstructured.Unstructured {
		return harness.Object("v1", "PersistentVolumeClaim", name)
	}
	set := func(name string) *unstructured.Unstructured { return harness.Object("apps/v1", "StatefulSet", name) }
	list := func(names ...any) []any { return append([]any{}, names...) }
	type values = map[string]any
	for _, loss := range []struct {
		name          string
		before, after values
		lost          *unstructured.Unstructured
		// what is a part of the message.
		what string
		// annotations are set after the edit.
		annotations map[string]string
		// recreated: the object exists again afterwards. scaled: it stays.
		recreated, scaled bool
	}{
		{name: "subchart", before: values{"store.enabled": true}, after: values{"store.enabled": false}, lost: claim("subchart-store"), what: "delete PersistentVolumeClaim"},
		{name: "renamedclaim", before: values{"claims": list("a")}, after: values{"claims": list("b")}, lost: claim("renamedclaim-a"), what: "delete PersistentVolumeClaim"},
		{name: "typo", before: values{"claims": list("a", "b")}, after: values{"clamis": list("a", "b")}, lost: claim("typo-b"), what: "delete PersistentVolumeClaim"},
		{name: "moved", before: values{"claims": list("a")}, after: values{"claims": list("a"), "in": elsewhere}, lost: claim("moved-a"), what: "delete PersistentVolumeClaim"},
		{name: "renamedset", before: values{"set.name": "a", "set.replicas": 1}, after: values{"set.name": "b", "set.replicas": 1}, lost: set("renamedset-a"), what: "delete StatefulSet"},
		{name: "definition", before: values{"definition": "things"}, after: values{"definition": ""}, lost: harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things."+l.Namespace+".test"), what: "delete CustomResourceDefinition"},
		{name: "namespace", before: values{"namespace": extra}, after: values{"namespace": ""}, lost: harness.Object("v1", "Namespace", extra), what: "delete Namespace"},
		{name: "protected", before: values{"protect": true}, after: values{"message": ""}, lost: harness.ConfigMap("protected"), what: "delete ConfigMap"},
		{
			name: "forced", before: values{"set.name": "a", "set.replicas": 1}, after: values{"set.name": "a", "set.replicas": 1, "set.service": "two"},
			lost: set("forced-a"), what: "recreate StatefulSet", annotations: map[string]string{"force": "1"}, recreated: true,
		},
		{
			name: "collected", before: values{"set.name": "a", "set.replicas": 1, "set.whenDeleted": "Delete"}, after: values{"set.name": "a", "set.replicas": 1, "set.whenDeleted": "Delete", "set.service": "two"},
			lost: set("collected-a"), what: "recreate StatefulSet", annotations: map[string]string{"force": "1"}, recreated: true,
		},
		{
			name: "scaled", before: values{"set.name": "a", "set.replicas": 2, "set.whenScaled": "Delete"}, after: values{"set.name": "a", "set.replicas": 1, "set.whenScaled": "Delete"},
			lost: set("scaled-a"), what: "scale down StatefulSet", scaled: true,
		},
	} {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			env := l.For(t)
			cr := l.cr(loss.name, loss.before)
			env.Create(cr)
			env.WaitReady(cr)
			uid := env.Get(loss.lost).GetUID()
			audit := env.Audit(harness.SharedUser())
			env.SetSpec(l.cr(loss.name, loss.after))
			for name, value := range loss.annotations {
				env.Annotate(cr, name, value)
			}
			plan := waitApproval(env, cr, loss.what+" ")
			expectUnwritten(t, audit, loss.name)
			if now := env.Get(loss.lost).GetUID(); now != uid {
				t.Fatalf("the object was recreated before the approval: UID %s, then %s", uid, now)
			}
			if event := env.WaitEvent(cr, api.ReasonApprovalRequired); event.Type != "Warning" {
				t.Errorf("event is %+v", event)
			}
			// Another digest approves nothing.
			env.Annotate(cr, "approve", "0123456789abcdef")
			env.WaitStatus(cr, "the refusal of another digest", func(status api.Status) error {
				if message := harness.Condition(status, api.ConditionReady).Message; !strings.Contains(message, "digest of another plan") {
					return fmt.Errorf("message is %s", message)
				}
				return nil
			})
			expectUnwritten(t, audit, loss.name)
			env.Annotate(cr, "approve", plan.Digest)
			status := env.WaitRevision(cr, 2)
			if status.Plan != nil || len(status.History) == 0 || !strings.Contains(status.History[0].Description, "plan "+plan.Digest+" approved") {
				t.Errorf("after the approval, .status.plan is %+v and the history is %+v", status.Plan, status.History)
			}
			env.WaitEvent(cr, api.EventApproved)
			switch {
			case loss.scaled:
			case loss.recreated:
				env.Wait("the object to be recreated", func(context.Context) error {
					if env.Get(loss.lost).GetUID() == uid {
						return fmt.Errorf("it has the same UID")
					}
					return nil
				})
			default:
				env.WaitGone(loss.lost)
			}
		})
	}
}

// A rollback that a user requests waits, and is carried out after the approval.
func TestGuard_StopsRollbackAcrossClaim(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web := l.cr("web", nil)
	l.Create(web)
	l.WaitReady(web)
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"a"}}))
	l.WaitRevision(web, 2)
	audit := l.Audit(harness.SharedUser())
	l.Annotate(web, "rollback-to", "1")
	plan := waitApproval(l.Env, web, "rollback to revision 1 that would delete PersistentVolumeClaim "+l.Namespace+"/web-a")
	expectUnwritten(t, audit, "web")
	l.Annotate(web, "approve", plan.Digest)
	l.WaitRevision(web, 3)
	l.WaitGone(harness.Object("v1", "PersistentVolumeClaim", "web-a"))
	l.ExpectRevisions("web", "1 superseded, 2 superseded, 3 deployed")
}

// A correction of drift does not delete claims: the replicas of a user stay until the user
// changes them, and other drift is corrected.
func TestGuard_DriftCorrectionKeepsClaims(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web := l.cr("web", map[string]any{"set.name": "a", "set.replicas": 1, "set.whenScaled": "Delete"})
	set, claim := harness.Object("apps/v1", "StatefulSet", "web-a"), harness.Object("v1", "PersistentVolumeClaim", "data-web-a-1")
	l.Create(web)
	l.WaitReady(web)
	l.Kubectl("scale", "statefulset", "web-a", "--replicas=2")
	status := l.WaitStatus(web, "the drift that is not corrected", func(status api.Status) error {
		drifted := harness.Condition(status, api.ConditionDrifted)
		if drifted == nil || drifted.Reason != api.ReasonApprovalRequired || !strings.Contains(drifted.Message, "StatefulSet "+l.Namespace+"/web-a: 1 replicas instead of 2") {
			return fmt.Errorf("Drifted is %+v", drifted)
		}
		return nil
	})
	if ready := harness.Condition(status, api.ConditionReady); ready.Reason == api.ReasonApprovalRequired {
		t.Errorf("Ready is %+v: there is no plan to approve", ready)
	}
	l.Wait("the claim of the second replica", func(ctx context.Context) error {
		_, err := l.At(claim).Get(ctx, claim.GetName(), metav1.GetOptions{})
		return err
	})
	uid := l.Get(claim).GetUID()
	l.Patch(set, `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "docker.io/library/busybox:other"}]`)
	l.Wait("the other drift to be corrected", func(context.Context) error {
		containers, _, _ := unstructured.NestedSlice(l.Get(set).Object, "spec", "template", "spec", "containers")
		if image := containers[0].(map[string]any)["image"]; image != "docker.io/library/busybox:1.37" {
			return fmt.Errorf("the image is %v", image)
		}
		return nil
	})
	if replicas, _, _ := unstructured.NestedInt64(l.Get(set).Object, "spec", "replicas"); replicas != 2 || l.Get(claim).GetUID() != uid || l.Get(claim).GetDeletionTimestamp() != nil {
		t.Errorf("%d replicas, want 2, with the claim", replicas)
	}
	// The StatefulSet controller deletes the claim of a replica whose pod runs, and
	// keeps the claim if the pod is being replaced.
	l.Kubectl("rollout", "status", "statefulset/web-a")
	l.Kubectl("scale", "statefulset", "web-a", "--replicas=1")
	l.WaitStatus(web, "the end of the drift", func(status api.Status) error {
		if drifted := harness.Condition(status, api.ConditionDrifted); drifted != nil {
			return fmt.Errorf("Drifted is %+v", drifted)
		}
		return nil
	})
	l.WaitGone(claim)
}

// While an upgrade waits, drift of the running release is corrected.
func TestGuard_CorrectsDriftMeanwhile(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web := l.cr("web", map[string]any{"claims": []any{"a"}})
	l.Create(web)
	l.WaitReady(web)
	l.SetSpec(l.cr("web", map[string]any{"message": "two"}))
	plan := waitApproval(l.Env, web, "delete PersistentVolumeClaim")
	l.Patch(harness.ConfigMap("web"), `[{"op": "replace", "path": "/data/message", "value": "theirs"}]`)
	l.Wait("the drift to be corrected", func(context.Context) error {
		if data, _, _ := unstructured.NestedString(l.Get(harness.ConfigMap("web")).Object, "data", "message"); data != "one" {
			return fmt.Errorf("message is %q", data)
		}
		return nil
	})

	// The plan of another edit needs another approval.
	l.SetSpec(l.cr("web", map[string]any{"message": "three"}))
	l.WaitStatus(web, "another plan", func(status api.Status) error {
		if status.Plan == nil || status.Plan.Digest == plan.Digest {
			return fmt.Errorf("plan is %+v", status.Plan)
		}
		return nil
	})
	l.Annotate(web, "approve", plan.Digest)
	fenceOf(l.Env, l.kind)
	l.ExpectRevisions("web", "1 deployed")

	// The edit is withdrawn.
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"a"}}))
	l.WaitCondition(web, "Ready", metav1.ConditionTrue, "Deployed")
	if status := l.Status(web); status.Plan != nil {
		t.Errorf("plan is %+v", status.Plan)
	}
	l.ExpectRevisions("web", "1 deployed")
}

// With onDelete: Delete, a protected object stops the uninstall, until it is not protected any
// longer, or its namespace is deleted.
func TestGuard_ProtectedObjectStopsUninstall(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesDeleting)
	web := l.cr("web", map[string]any{"protect": true})
	l.Create(web)
	l.WaitReady(web)
	audit := l.Audit(harness.SharedUser())
	l.Delete(web)
	status := l.WaitCondition(web, "Ready", metav1.ConditionFalse, api.ReasonObjectProtected)
	if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, "ConfigMap "+l.Namespace+"/web") {
		t.Errorf("the message of Ready is %s", message)
	}
	expectUnwritten(t, audit, "web")
	l.Kubectl("annotate", "configmap", "web", "chartwright.dev/protect-")
	l.WaitGone(web, harness.ConfigMap("web"))
}

// Approvals survive restarts. While the operator does not run, a foreground deletion keeps
// guarded objects.
func TestGuard_SurvivesRestarts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	l := losses{env, env.NewKind("Losses")}
	env.InstallCRD(l.kind)
	elsewhere, account := env.NewNamespace("elsewhere"), env.NewAccount()
	start := func(chart string) *harness.Operator {
		entry := harness.MakeEntry(l.kind, harness.Chart(chart)).With("rollout", map[string]any{"maxConcurrent": 1})
		maps.Copy(entry, lossesAllowed)
		maps.Copy(entry, movable)
		return env.NewOperator(harness.Options{Watches: env.Watches(entry), Account: account, AllNamespaces: true}).Start()
	}
	operator := start("losses")
	claims := map[string]any{"claims": []any{"a"}}
	edited, moved, foreground := l.cr("edited", claims), l.cr("moved", claims), l.cr("foreground", claims)
	env.Create(edited, moved, foreground)
	env.WaitReady(edited, moved, foreground)

	// Plans do not change.
	env.SetSpec(l.cr("edited", map[string]any{"message": "two"}))
	env.SetSpec(l.cr("moved", map[string]any{"claims": []any{"a"}, "target": elsewhere}))
	plan, move := waitApproval(env, edited, "delete PersistentVolumeClaim"), waitApproval(env, moved, "move the release")
	operator.Stop()
	operator.Start()
	fenceOf(env, l.kind)
	if again := waitApproval(env, edited, "delete PersistentVolumeClaim"); again.Digest != plan.Digest {
		t.Errorf("after a restart, the digest is %s instead of %s", again.Digest, plan.Digest)
	}
	if again := waitApproval(env, moved, "move the release"); again.Digest != move.Digest {
		t.Errorf("after a restart, the digest is %s instead of %s", again.Digest, move.Digest)
	}

	// An approved move continues.
	env.Annotate(moved, "approve", move.Digest)
	operator.Kill()
	operator.Start()
	waitMoved(env, moved, elsewhere)
	env.WaitGone(harness.Object("v1", "PersistentVolumeClaim", "moved-a"), harness.ConfigMap("moved"))
	env.ExpectRevisions("moved", "")
	env.In(elsewhere).ExpectRevisions("moved", "1 deployed")

	// Neither the garbage collector nor the uninstall deletes guarded objects.
	operator.Stop()
	claim := harness.Object("v1", "PersistentVolumeClaim", "foreground-a")
	env.Kubectl("delete", l.kind.Resource()+"/foreground", "--cascade=foreground", "--wait=false")
	env.Wait("the garbage collector to have processed the deletion", func(ctx context.Context) error {
		live, err := env.At(foreground).Get(ctx, "foreground", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if slices.Contains(live.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			return fmt.Errorf("the finalizers are %v", live.GetFinalizers())
		}
		return nil
	})
	expectKept := func() {
		if live := env.Get(claim); live.GetDeletionTimestamp() != nil || len(live.GetOwnerReferences()) > 0 {
			t.Errorf("the claim has the metadata %v", live.Object["metadata"])
		}
	}
	expectKept()
	operator.Start()
	env.WaitGone(foreground)
	expectKept()
	env.Delete(edited, moved)
	env.WaitGone(edited, moved)

	// A new chart that drops a claim waits at each custom resource, and does not stop
	// the rollout to the others.
	web, other := l.cr("a-web", claims), l.cr("b-other", nil)
	env.Create(web, other)
	env.WaitReady(web, other)
	operator.Stop()
	audit := env.Audit(operator.User())
	start("plain")
	plan = waitApproval(env, web, "delete PersistentVolumeClaim "+env.Namespace+"/a-web-a")
	expectUnwritten(t, audit, "a-web")
	env.WaitRevision(other, 2)
	if update := harness.Condition(env.Status(web), api.ConditionUpdateAvailable); update == nil || update.Reason != api.ReasonApprovalRequired {
		t.Errorf("UpdateAvailable is %+v", update)
	}
	env.Annotate(web, "approve", plan.Digest)
	env.WaitRevision(web, 2)
	env.WaitGone(harness.Object("v1", "PersistentVolumeClaim", "a-web-a"))
}

func TestGuard_TerminatingNamespaceIsNotHeld(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	there := l.In(l.NewNamespace("doomed"))
	web := harness.MakeCR(l.kind, "web").Set("protect", true).Set("claims", []any{"a"}).Obj()
	there.Create(web)
	there.WaitReady(web)
	l.Kubectl("delete", "namespace", there.Namespace, "--wait=false")
	there.WaitGone(web)
}

func TestGuard_ModesAndApproval(t *testing.T) {
	t.Parallel()
	for _, mode := range []struct {
		name  string
		kind  harness.Kind
		event bool
	}{
		{"Warn", lossesWithWarnings, true},
		{"Off", lossesWithoutGuard, false},
		{"Never", lossesWithoutApproval, true},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			l := useLosses(t, mode.kind)
			web := l.cr("web", map[string]any{"claims": []any{"a"}})
			l.Create(web)
			l.WaitReady(web)
			l.SetSpec(l.cr("web", nil))
			l.WaitRevision(web, 2)
			l.WaitGone(harness.Object("v1", "PersistentVolumeClaim", "web-a"))
			if mode.event {
				l.WaitEvent(web, api.EventDataAtRisk)
			} else if l.CountEvents(web, api.EventDataAtRisk) > 0 {
				t.Error("an event was emitted")
			}
		})
	}
	t.Run("Always", func(t *testing.T) {
		t.Parallel()
		l := useLosses(t, lossesWithApproval)
		web := l.cr("web", nil)
		l.Create(web)
		l.WaitReady(web)
		l.SetSpec(l.cr("web", map[string]any{"message": "two"}))
		plan := waitApproval(l.Env, web, "upgrade without operations that can lose data")
		expectData(t, l.Env, "web", "message", "one")
		caller := callerOf(l.Env, l.kind)
		target := l.kind.Resource() + "/web"
		caller.ends(1, []string{"approve", target, "--plan", "0123"}, "the plan that waits is "+plan.Digest)
		caller.does([]string{"approve", target, "--plan", plan.Digest, "--wait"}, "Revision 2")
		expectData(t, l.Env, "web", "message", "two")
		caller.ends(1, []string{"approve", target}, "no plan waits")

		l.Annotate(web, api.AnnotationRollbackTo, "1")
		plan = waitApproval(l.Env, web, "rollback to revision 1 without operations that can lose data")
		expectData(t, l.Env, "web", "message", "two")
		caller.does([]string{"approve", target, "--plan", plan.Digest, "--wait"}, "Revision 3")
		expectData(t, l.Env, "web", "message", "one")
	})
}
