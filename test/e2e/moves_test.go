package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// movable is the key of a kind whose spec selects the namespace of the release.
var movable = harness.Entry{"releaseNamespace": `{{ dig "spec" "target" .metadata.namespace . }}`}

// waitMoved waits until the release of a custom resource is ready in a namespace.
func waitMoved(env *harness.Env, cr *unstructured.Unstructured, namespace string) {
	env.T().Helper()
	env.WaitStatus(cr, "the release in namespace "+namespace, func(status api.Status) error {
		ready := harness.Condition(status, api.ConditionReady)
		if status.Release == nil || status.Release.Namespace != namespace || status.Plan != nil || ready == nil || ready.Reason != api.ReasonDeployed {
			return fmt.Errorf("the release is %+v, the plan %+v, and Ready %+v", status.Release, status.Plan, ready)
		}
		return nil
	})
}

// A changed releaseNamespace is stopped before any write, and carried out after the
// approval.
func TestGuard_StopsMoveUntilApproved(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesMovable)
	elsewhere := l.NewNamespace("elsewhere")
	web := l.cr("web", map[string]any{"claims": []any{"a"}})
	l.Create(web)
	l.WaitReady(web)
	claim := harness.Object("v1", "PersistentVolumeClaim", "web-a")
	uid := l.Get(claim).GetUID()
	audit := l.Audit(harness.SharedUser())
	moved := l.cr("web", map[string]any{"claims": []any{"a"}, "target": elsewhere})
	user, _ := administrator(l.Env)
	planned := user.Plan(moved, l.Watches(l.SharedEntry(l.kind)))
	l.SetSpec(moved)
	move := "move the release from namespace " + l.Namespace + " to " + elsewhere + ", which deletes and creates all its objects: delete PersistentVolumeClaim " + l.Namespace + "/web-a"
	plan := waitApproval(l.Env, web, move)
	if planned.Result != "ApprovalRequired" || planned.Code != 3 || planned.Approval.Digest != plan.Digest {
		t.Errorf("planned was %+v, the operator waits for %+v", planned, plan)
	}
	expectUnwritten(t, audit, "web")
	if now := l.Get(claim).GetUID(); now != uid {
		t.Fatalf("the claim was recreated before the approval: UID %s, then %s", uid, now)
	}

	l.Annotate(web, "approve", plan.Digest)
	waitMoved(l.Env, web, elsewhere)
	l.WaitGone(claim, harness.ConfigMap("web"))
	l.ExpectRevisions("web", "")
	there := l.In(elsewhere)
	there.ExpectRevisions("web", "1 deployed")
	there.Get(claim)
	there.Get(harness.ConfigMap("web"))

	// A move without guarded objects waits, too. It is rejected by another edit.
	l.SetSpec(l.cr("web", map[string]any{"target": elsewhere}))
	approve(l.Env, web, "delete PersistentVolumeClaim "+elsewhere+"/web-a")
	there.WaitGone(claim)
	l.SetSpec(l.cr("web", nil))
	waitApproval(l.Env, web, "move the release from namespace "+elsewhere+" to "+l.Namespace+", which deletes and creates all its objects. Nothing was changed")
	l.SetSpec(l.cr("web", map[string]any{"target": elsewhere}))
	waitMoved(l.Env, web, elsewhere)
	there.ExpectRevisions("web", "1 superseded, 2 deployed")
}

// A deletion does not wait for a move.
func TestGuard_DeletesWhileMoveWaits(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesMovable)
	elsewhere := l.NewNamespace("elsewhere")
	web := l.cr("web", map[string]any{"claims": []any{"a"}})
	l.Create(web)
	l.WaitReady(web)
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"a"}, "target": elsewhere}))
	waitApproval(l.Env, web, "move the release")
	l.Delete(web)
	l.WaitGone(web, harness.ConfigMap("web"))
	if claim := l.Get(harness.Object("v1", "PersistentVolumeClaim", "web-a")); claim.GetDeletionTimestamp() != nil {
		t.Error("the claim is deleted")
	}
}
