package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// everywhere allows a planner everything, as an administrator.
var everywhere = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// administrator returns a user with all permissions, and the audit of the user.
func administrator(env *harness.Env) (*harness.User, *harness.Audit) {
	user := env.NewUser()
	user.Grant(everywhere)
	return user, env.Audit(user.Account().User())
}

// Plan equals action: the writes of the operator after an edit are those of the plan,
// object by object and field by field, for random edits: 20, or 200 with
// $CHARTWRIGHT_LONG. The plans write nothing.
func TestPlan_EqualsAction(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	user, read := administrator(l.Env)
	watches := l.Watches(l.SharedEntry(l.kind))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	// More edits of one custom resource would wait for its allowance.
	resources, edits := testenv.Attempts(4, 40), 5
	t.Run("edits", func(t *testing.T) {
		for n := range resources {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				editAndCompare(losses{l.For(t), l.kind}, user, watches, fmt.Sprintf("web%02d", n), rand.New(rand.NewPCG(seed, uint64(n))), edits)
			})
		}
	})
	read.ExpectReadOnly()
}

// editAndCompare creates a custom resource, and compares the plan of each random edit with
// what the operator does.
func editAndCompare(l losses, user *harness.User, watches, name string, random *rand.Rand, edits int) {
	env, t := l.Env, l.T()
	cr := l.cr(name, randomLosses(random))
	env.Create(cr)
	env.WaitReady(cr)
	for i := range edits {
		audit := env.Audit(harness.SharedUser()).About(name)
		edited := l.cr(name, randomLosses(random))
		planned := user.For(env).Plan(edited, watches)
		env.SetSpec(edited)
		want := "Changes"
		switch {
		case planned.Approval != nil:
			want = "ApprovalRequired"
			waits := waitApproval(env, cr, "")
			if waits.Digest != planned.Approval.Digest || waits.Summary != planned.Approval.Summary {
				t.Fatalf("the operator waits for an approval of %+v, planned was %+v", waits, planned.Approval)
			}
			env.Annotate(cr, "approve", waits.Digest)
		case planned.Revision == 0:
			want = "NothingToDo"
		}
		if planned.Result != want {
			t.Fatalf("edit %d: the result is %s, want %s: %+v", i, planned.Result, want, planned)
		}
		env.WaitReady(cr)
		if status := env.Status(cr); planned.Revision > 0 && status.Release.Revision != int64(planned.Revision) {
			t.Fatalf("edit %d: revision %d, planned was %d", i, status.Release.Revision, planned.Revision)
		}
		planned.Compare(env, audit, true)
		if t.Failed() {
			t.Fatalf("edit %d: %+v", i, edited.Object["spec"])
		}
		planned.WaitDeleted(env)
	}
}

// randomLosses returns random values of the chart losses.
func randomLosses(random *rand.Rand) map[string]any {
	one := func(choices ...any) any { return choices[random.IntN(len(choices))] }
	values := map[string]any{
		"message": one("one", "two", "", "three"), "protect": one(true, false),
		"claims": one([]any{}, []any{"a"}, []any{"a", "b"}, []any{"c"}),
	}
	if name := one("", "", "a", "b").(string); name != "" {
		values["set.name"] = name
		values["set.replicas"] = int64(random.IntN(3))
		values["set.whenScaled"] = one("Retain", "Delete")
	}
	return values
}
