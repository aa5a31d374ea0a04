package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// killed is an operator that is killed repeatedly during one action.
type killed struct {
	*harness.Env
	kind     harness.Kind
	proxy    *harness.Proxy
	operator *harness.Operator
}

// verb is an action on a release.
type verb struct {
	name string
	// ready prepares a custom resource for the action, and do requests the
	// action.
	ready, do func(killed, string)
	// done returns an error unless the action is complete and nothing else has
	// changed.
	done func(context.Context, killed, string) error
}

// hookedUpgrade is the slowest verb. It has tests of its own, because subtests start last.
var hookedUpgrade = verb{
	"upgrade-with-hook",
	killed.installed,
	func(k killed, name string) { k.SetSpec(k.second(name, true)) },
	func(ctx context.Context, k killed, name string) error {
		return k.converged(ctx, name, "one=changed, three=third")
	},
}

var verbs = []verb{
	{
		"install",
		func(killed, string) {},
		func(k killed, name string) { k.Create(k.first(name)) },
		func(ctx context.Context, k killed, name string) error {
			return k.converged(ctx, name, "one=first, two=second")
		},
	},
	{
		"upgrade",
		killed.installed,
		func(k killed, name string) { k.SetSpec(k.second(name, false)) },
		func(ctx context.Context, k killed, name string) error {
			return k.converged(ctx, name, "one=changed, three=third")
		},
	},
	{
		"rollback",
		func(k killed, name string) {
			k.installed(name)
			k.SetSpec(k.second(name, false))
			k.WaitRevision(k.first(name), 2)
		},
		func(k killed, name string) {
			k.Patch(k.first(name), `[{"op": "add", "path": "/metadata/annotations", "value": {"chartwright.dev/rollback-to": "1"}}]`)
		},
		func(ctx context.Context, k killed, name string) error {
			return errors.Join(k.converged(ctx, name, "one=first, two=second"), k.held(ctx, name))
		},
	},
	{
		"uninstall",
		killed.installed,
		func(k killed, name string) { k.Delete(k.first(name)) },
		func(ctx context.Context, k killed, name string) error { return k.gone(ctx, name) },
	},
}

// An operator is killed at each of its writes, before the write reaches the API
// server or after it, without receiving the response; with $CHARTWRIGHT_LONG, both.
// The next process must reach the state that an uninterrupted operator would have
// reached. docs/dev/design.md contains the table of the points.
func TestKill_AtEachWrite(t *testing.T) {
	t.Parallel()
	for _, verb := range verbs {
		t.Run(verb.name, func(t *testing.T) {
			t.Parallel()
			killAtEachWrite(t, verb)
		})
	}
}

func TestKill_AtEachWriteOfUpgradeWithHook(t *testing.T) {
	t.Parallel()
	killAtEachWrite(t, hookedUpgrade)
}

func killAtEachWrite(t *testing.T, verb verb) {
	t.Helper()
	var table killTable
	t.Cleanup(func() { t.Logf("%s:\n%s", verb.name, &table) })
	// The first write, and which other writes.
	first, step, least := []int{1, 2}, 2, 2
	if testenv.Long() {
		// At least the record, three objects and the status.
		first, step, least = []int{1, 1}, 1, 5
	}
	k := serveKilled(t)
	for i, moment := range []harness.Moment{harness.BeforeWrite, harness.AfterWrite} {
		points := 0
		// The number of status writes varies, so that the test ends
		// only after several points without a write.
		for write, misses := first[i], 0; misses < 2; write += step {
			if k.survives(verb, write, moment, &table) {
				points++
			} else {
				misses++
			}
		}
		if points < least {
			t.Errorf("%d points %s a write: the proxy misses writes", points, moment)
		}
	}
}

func serveKilled(t *testing.T) killed {
	t.Helper()
	env := harness.New(t)
	k := killed{Env: env, kind: env.NewKind("Pieces"), proxy: env.NewProxy()}
	env.InstallCRD(k.kind)
	k.operator = env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(k.kind, harness.Chart("pieces"))),
		Account: env.NewAccount(),
		Proxy:   k.proxy,
	}).Start()
	return k
}

// survives kills the operator at one write of an action and checks that the
// next process completes the action. It returns false if the action has fewer
// writes.
func (k killed) survives(verb verb, write int, moment harness.Moment, table *killTable) bool {
	k.T().Helper()
	name := fmt.Sprintf("%s-%d", moment, write)
	verb.ready(k, name)
	trap := k.operator.KillAtWrite(write, moment)
	verb.do(k, name)
	died := false
	k.Wait(fmt.Sprintf("%s to be killed %s write %d, or done", name, moment, write), func(ctx context.Context) error {
		if _, died = trap.Fired(); died {
			return nil
		}
		if err := verb.done(ctx, k, name); err != nil {
			return err
		}
		if len(trap.Writes()) >= write {
			return errors.New("the operator is being killed")
		}
		return nil
	})
	if !died {
		k.proxy.Trap(0, moment, nil)
		return false
	}
	call, _ := trap.Fired()
	found, printed := k.found(name), len(k.operator.Log())
	k.operator.Start()
	k.Wait(fmt.Sprintf("%s to be done, after a kill %s write %d, %s", name, moment, write, call), func(ctx context.Context) error {
		return verb.done(ctx, k, name)
	})
	table.add(name, fmt.Sprintf("%s %s", moment, call), found, steps(k.operator.Log()[printed:], name))
	return true
}

func (k killed) first(name string) *unstructured.Unstructured {
	return harness.MakeCR(k.kind, name).Set("pieces", map[string]any{"one": "first", "two": "second"}).Obj()
}

func (k killed) second(name string, hook bool) *unstructured.Unstructured {
	return harness.MakeCR(k.kind, name).Set("pieces", map[string]any{"one": "changed", "three": "third"}).Set("hook.enabled", hook).Obj()
}

func (k killed) installed(name string) {
	k.T().Helper()
	k.Create(k.first(name))
	k.WaitRevision(k.first(name), 1)
}

// converged returns an error unless no action is in progress, the release is
// reported as Ready, and its ConfigMaps are the given pieces.
func (k killed) converged(ctx context.Context, name, pieces string) error {
	cr, err := k.At(k.first(name)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, err := harness.StatusOf(cr)
	if err != nil {
		return err
	}
	ready := harness.Condition(status, "Ready")
	if ready == nil || ready.Status != metav1.ConditionTrue || status.ObservedGeneration != cr.GetGeneration() {
		return fmt.Errorf("generation %d is not Ready: %v", cr.GetGeneration(), cr.Object["status"])
	}
	revision, err := k.AtRest(ctx, name)
	if err != nil {
		return err
	}
	if status.Release == nil || status.Release.Revision != int64(revision.Version) {
		return fmt.Errorf("the status reports %v, but revision %d is deployed", status.Release, revision.Version)
	}
	if err := k.CompareObjects(ctx, cr, revision, harness.ConfigMap("").GroupVersionKind(), harness.Secret("").GroupVersionKind()); err != nil {
		return err
	}
	found, err := k.pieces(ctx, name)
	if err == nil && found != pieces {
		err = fmt.Errorf("the ConfigMaps are %s, want %s", found, pieces)
	}
	return err
}

func (k killed) held(ctx context.Context, name string) error {
	cr, err := k.At(k.first(name)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, err := harness.StatusOf(cr)
	if held := harness.Condition(status, "Held"); err == nil && (held == nil || held.Status != metav1.ConditionTrue) {
		err = fmt.Errorf("the release is not held: %v", cr.Object["status"])
	}
	return err
}

func (k killed) gone(ctx context.Context, name string) error {
	if _, err := k.At(k.first(name)).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the custom resource exists (%w)", err)
	}
	if found := k.found(name); found != "nothing" {
		return fmt.Errorf("remaining: %s", found)
	}
	return nil
}
