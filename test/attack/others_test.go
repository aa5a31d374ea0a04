package attack

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

const (
	interval = 100 * time.Millisecond
	// few installs are sufficient if the attack ends quickly, several if it
	// continues.
	few, several = 3, 6
)

// others is the victim's work during an attack: it installs one custom resource
// of a plain chart after another, with short pauses.
type others struct {
	a    *arena
	stop context.CancelFunc
	// installs is the number of custom resources that have become Ready.
	installs atomic.Int64
	// ended is closed when the work has ended.
	ended chan struct{}
}

// watchOthers starts the victim's work. It ends with served, or with the test.
func (a *arena) watchOthers() *others {
	ctx, stop := context.WithCancel(a.t.Context())
	o := &others{a: a, stop: stop, ended: make(chan struct{})}
	a.t.Cleanup(o.end)
	go o.work(ctx)
	return o
}

func (o *others) end() {
	o.stop()
	<-o.ended
}

func (o *others) work(ctx context.Context) {
	defer close(o.ended)
	for o.a.install(ctx) {
		o.installs.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// install creates one custom resource of the victim, waits until it is Ready, and
// deletes it. It reports whether that succeeded before the context ended.
func (a *arena) install(ctx context.Context) bool {
	if ctx.Err() != nil || a.operator.Survived() != nil {
		return false
	}
	name := fmt.Sprintf("probe-%d", a.probes.Add(1))
	cr := harness.MakeCR(a.plain, name).Set("note", "mine").Obj()
	client := a.victim.At(cr)
	if _, err := client.Create(ctx, cr, metav1.CreateOptions{}); err != nil {
		if ctx.Err() == nil {
			a.t.Errorf("the victim creates %s: %v", name, err)
		}
		return false
	}
	err := wait.PollUntilContextCancel(ctx, interval/5, true, func(ctx context.Context) (bool, error) {
		if err := a.operator.Survived(); err != nil {
			return false, err
		}
		live, err := client.Get(ctx, name, metav1.GetOptions{})
		return err == nil && ready(live).Status == metav1.ConditionTrue, nil
	})
	if deleteErr := client.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}); deleteErr != nil {
		a.t.Errorf("the victim deletes %s: %v", name, deleteErr)
	}
	return err == nil
}

// served ends the victim's work when that many installs have begun and succeeded
// from now on. The deadline is that of the harness, because a machine may be slow: see
// before for the order of the installs and of the attacker's work.
func (o *others) served(installs int64) {
	o.a.t.Helper()
	// The install in progress began earlier.
	want := o.installs.Load() + 1 + installs
	o.a.whileAlive(fmt.Sprintf("%d installs of another tenant", installs), func(context.Context) error {
		if got := o.installs.Load(); got < want {
			return fmt.Errorf("%d of %d installs", got, want)
		}
		return nil
	})
	o.end()
	o.a.t.Logf("%d installs of another tenant; the operator needed at most %d MiB", o.installs.Load(), o.a.operator.HighWater()>>20)
}

// before is served, and checks that the operator is still busy with the attacker's
// custom resources. Only an operator that alternates between tenants completes the
// victim's installs before the attacker's earlier and longer work.
func (o *others) before(installs int64) {
	o.a.t.Helper()
	o.served(installs)
	if o.a.operator.Survived() != nil {
		return
	}
	created, processed, err := o.a.progress(o.a.t.Context())
	if err != nil {
		o.a.t.Fatal(err)
	}
	o.a.t.Logf("the operator has processed %d of the attacker's %d custom resources", processed, created)
	if processed == created {
		o.a.t.Errorf("another tenant was served after all %d custom resources of the attacker", created)
	}
}

// progress returns the number of the attackers' custom resources, and how many of them
// the operator has processed.
func (a *arena) progress(ctx context.Context) (created, processed int, err error) {
	list, err := a.admin.At(harness.MakeCR(a.plain, "").Obj()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, err
	}
	for i := range list.Items {
		if found := ready(&list.Items[i]); found.Status == metav1.ConditionTrue || found.Status == metav1.ConditionFalse {
			processed++
		}
	}
	return len(list.Items), processed, nil
}
