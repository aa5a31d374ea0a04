package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// serveScaled serves the chart "hooks" for a kind with a scale subresource.
func serveScaled(env *harness.Env) (harness.Kind, *harness.Operator) {
	env.T().Helper()
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	env.Patch(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.Resource()),
		`[{"op": "add", "path": "/spec/versions/0/subresources/scale", "value": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}]`)
	entry := env.SharedEntry(hooksScaled).With("group", kind.Group)
	return kind, env.NewOperator(harness.Options{Watches: env.Watches(entry), Account: env.NewAccount()}).Start()
}

// A user's edit of the field that the scale subresource writes is an edit of
// the spec.
func TestHold_EndsWhenOnlyReplicasAreEdited(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksScaled)
	manifest := func(web ownedRelease) string {
		data, err := json.Marshal(harness.MakeCR(kind, web.name).Set("message", "three").Set("replicas", 7).Obj())
		if err != nil {
			web.t.Fatal(err)
		}
		return string(data)
	}
	const patch = `{"spec": {"replicas": 7}}`
	for _, test := range []struct {
		name string
		edit func(ownedRelease)
	}{
		{"by kubectl apply", func(web ownedRelease) { web.env.KubectlWith(manifest(web), "apply", "-f", "-") }},
		{"by server-side apply", func(web ownedRelease) {
			web.env.KubectlWith(manifest(web), "apply", "--server-side", "--force-conflicts", "-f", "-")
		}},
		{"by kubectl patch", func(web ownedRelease) {
			web.env.Kubectl("patch", kind.Resource(), web.name, "--type=merge", "-p", patch)
		}},
		{"by kubectl edit", func(web ownedRelease) {
			web.env.Kubectl("patch", kind.Resource(), web.name, "--type=merge", "--field-manager=kubectl-edit", "-p", patch)
		}},
		{"after they were scaled", func(web ownedRelease) {
			web.env.Kubectl("scale", kind.Resource(), web.name, "--replicas=5")
			web.held(4, 1, "one")
			web.env.Kubectl("patch", kind.Resource(), web.name, "--type=merge", "-p", patch)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			web := threeRevisions(env.For(t), kind, test.name)
			web.annotate("rollback-to", "1")
			web.held(4, 1, "one")
			test.edit(web)
			web.follows(5, "three")
			expectData(t, web.env, web.name, "replicas", "7")
		})
	}
}

// kubectl scale and autoscalers do not end a hold, also across a restart.
func TestHold_ScalingWaitsUntilHoldEnds(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serveScaled(env)
	// The API server records the manager of a field only if a client has set
	// it.
	unset, set := threeRevisions(env, kind, "unset"), threeRevisions(env, kind, "set")
	set.env.Kubectl("patch", kind.Resource(), set.name, "--type=merge", "-p", `{"spec": {"replicas": 2}}`)
	set.follows(4, "three")
	type scaling struct {
		ownedRelease
		revision int64
		from     string
	}
	both := []scaling{{unset, 4, "unset"}, {set, 5, "2"}}
	waits := func(web scaling) {
		t.Helper()
		web.held(web.revision, 1, "one")
		expectData(t, env, web.name, "replicas", "1")
		env.WaitStatus(web.cr, "reporting that scaling waits", func(status api.Status) error {
			want := fmt.Sprintf("Scaling .spec.replicas from %s to 5 takes effect when the hold ends", web.from)
			if held := harness.Condition(status, "Held"); held == nil || !strings.Contains(held.Message, want) {
				return fmt.Errorf("condition Held is %+v", held)
			}
			return nil
		})
	}
	for _, web := range both {
		web.annotate("rollback-to", "1")
		web.held(web.revision, 1, "one")
		env.Kubectl("scale", kind.Resource(), web.name, "--replicas=5")
		waits(web)
	}
	operator.Stop()
	for _, web := range both {
		// Other writes are not edits, either.
		env.Kubectl("label", kind.Resource(), web.name, "team=shop")
		env.Kubectl("annotate", kind.Resource(), web.name, "example.com/note=x")
	}
	operator.Start()
	fenceOf(env, kind)
	for _, web := range both {
		waits(web)
		web.annotate("rollback-to", "none")
		web.follows(web.revision+1, "three")
		expectData(t, env, web.name, "replicas", "5")
	}
}

// If the spec is edited after a rollback request and before the rollback, the
// edit takes precedence.
func TestRollbackRequest_EditBeforeRollbackWins(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serveScaled(env)
	node := newNodeLabel(env)
	busy := threeRevisions(env, kind, "busy")
	busy.edit("four", map[string]any{"post-upgrade": map[string]any{"node": node}})
	waitRunningHook(env, "busy-post-upgrade")
	busy.annotate("rollback-to", "1")
	nextSecond(env)
	busy.edit("five", nil)
	labelNode(env, node)
	busy.follows(5, "five")
	if event := env.WaitEvent(busy.cr, "RollbackSkipped"); event.Type != "Normal" || !strings.Contains(event.Note, "rollback-to=1 is skipped") {
		t.Errorf("event is %+v", event)
	}

	edited := threeRevisions(env, kind, "edited-later")
	before := threeRevisions(env, kind, "edited-before")
	seen := threeRevisions(env, kind, "asked-by-the-plugin")
	scaled := threeRevisions(env, kind, "scaled-later")
	once := threeRevisions(env, kind, "in-one-patch")
	operator.Stop()
	c := callerOf(env, kind)
	before.edit("four", nil)
	nextSecond(env)
	edited.annotate("rollback-to", "1")
	before.annotate("rollback-to", "1")
	c.does([]string{"rollback", kind.Resource() + "/" + scaled.name, "1"})
	nextSecond(env)
	edited.edit("four", nil)
	env.Kubectl("scale", kind.Resource(), scaled.name, "--replicas=5")
	// The generation shows the order, even within the same second.
	c.does([]string{"rollback", kind.Resource() + "/" + seen.name, "1"})
	seen.edit("four", nil)
	env.Kubectl("patch", kind.Resource(), once.name, "--type=merge", "-p",
		`{"metadata": {"annotations": {"chartwright.dev/rollback-to": "1"}}, "spec": {"message": "four"}}`)
	operator.Start()

	for _, web := range []ownedRelease{edited, seen} {
		web.follows(4, "four")
		env.WaitEvent(web.cr, "RollbackSkipped")
	}
	for _, web := range []ownedRelease{before, scaled, once} {
		web.held(4, 1, "one")
		if event := env.WaitEvent(web.cr, "RolledBack"); strings.Contains(event.Note, "perhaps after it") != (web.name == once.name) {
			t.Errorf("%s: event is %+v", web.name, event)
		}
	}
	// Later edits are applied as usual.
	for _, web := range []ownedRelease{edited, seen, before, scaled, once} {
		web.edit("six", nil)
		web.follows(5, "six")
	}
}

// nextSecond waits for the next second: timestamps of the API server have a
// resolution of one second.
func nextSecond(env *harness.Env) {
	env.T().Helper()
	began := time.Now().Unix()
	env.Wait("the next second", func(context.Context) error {
		if time.Now().Unix() == began {
			return errors.New("it is still the same second")
		}
		return nil
	})
}
