package attack

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

const (
	// promised is the maximum time that a tenant waits for an install, whatever
	// another tenant does.
	promised = 5 * time.Second
	// givenUp is the time after which the wait for one install ends. It is longer than
	// every limit.
	givenUp = time.Minute
	// requestsOfAnInstall is the number of sequential requests of an install.
	requestsOfAnInstall = 10
	usualRequest        = 20 * time.Millisecond
	interval            = 100 * time.Millisecond
	// few installs are sufficient if the attack ends quickly, several if it
	// continues.
	few, several = 3, 6
)

// measure returns how long the victim may wait during an attack: the promised
// time or, on a slow machine, a multiple of the duration of an install without
// an attack.
func (a *arena) measure() time.Duration {
	a.t.Helper()
	o := &others{a: a}
	var slowest time.Duration
	for range few {
		a.probes++
		took, ok := o.install(a.t.Context(), fmt.Sprintf("probe-%d", a.probes))
		if !ok || took == givenUp {
			a.t.Fatal("a custom resource is not installed before any attack")
		}
		slowest = max(slowest, took)
	}
	limit := max(harness.TimeLimit(promised), min(10*slowest, givenUp))
	a.t.Logf("an install takes %s before the attack, so the limit is %s", slowest.Round(time.Millisecond), limit.Round(time.Millisecond))
	return limit
}

// others is the victim's work during an attack: each second it creates a custom
// resource of a plain chart and measures the time until it is ready.
type others struct {
	a    *arena
	stop context.CancelFunc
	// done receives the measured times at the end.
	done chan []time.Duration
	// measured receives a value after each measurement.
	measured chan struct{}
}

// watchOthers starts the victim's work.
func (a *arena) watchOthers() *others {
	ctx, stop := context.WithCancel(a.t.Context())
	o := &others{a: a, stop: stop, done: make(chan []time.Duration, 1), measured: make(chan struct{}, 1000)}
	go o.work(ctx)
	return o
}

func (o *others) work(ctx context.Context) {
	var times []time.Duration
	defer func() { o.done <- times }()
	for ctx.Err() == nil && o.a.operator.Survived() == nil {
		o.a.probes++
		took, ok := o.install(ctx, fmt.Sprintf("probe-%d", o.a.probes))
		if !ok {
			return
		}
		times = append(times, took)
		o.measured <- struct{}{}
		select {
		case <-ctx.Done():
		case <-time.After(max(0, time.Second-took)):
		}
	}
}

// install creates one custom resource, waits until it is Ready, and deletes it.
// A started install is always measured to its end. The additional time of slow
// requests to the API server is subtracted, because no operator can prevent
// attacks from slowing down the API server.
func (o *others) install(ctx context.Context, name string) (took time.Duration, ok bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givenUp)
	defer cancel()
	victim := o.a.victim
	cr := harness.MakeCR(o.a.plain, name).Set("note", "mine").Obj()
	client := victim.At(cr)
	if _, err := client.Create(ctx, cr, metav1.CreateOptions{}); err != nil {
		o.a.t.Errorf("the victim creates %s: %v", name, err)
		return 0, false
	}
	began := time.Now()
	var asking, requests time.Duration
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := o.a.operator.Survived(); err != nil {
			return false, err
		}
		asked := time.Now()
		live, err := client.Get(ctx, name, metav1.GetOptions{})
		asking, requests = asking+time.Since(asked), requests+1
		return err == nil && ready(live).Status == metav1.ConditionTrue, nil
	})
	took = time.Since(began)
	if err != nil {
		return givenUp, o.deleted(ctx, cr)
	}
	// On a machine that is not overloaded, a request takes some milliseconds.
	if mean := asking / requests; mean > usualRequest {
		took = max(0, took-requestsOfAnInstall*(mean-usualRequest))
	}
	return took, o.deleted(ctx, cr)
}

// deleted deletes a custom resource without waiting until it is gone.
func (o *others) deleted(ctx context.Context, cr *unstructured.Unstructured) bool {
	err := o.a.victim.At(cr).Delete(context.WithoutCancel(ctx), cr.GetName(), metav1.DeleteOptions{})
	if err != nil {
		o.a.t.Errorf("the victim deletes %s: %v", cr.GetName(), err)
	}
	return err == nil
}

// served ends the victim's work after the given number of installs, one per
// second, and checks that each was in time.
func (o *others) served(installs int) {
	o.a.t.Helper()
	if why := o.late(installs); why != "" {
		o.a.t.Error(why)
	}
}

// late is served, but returns why an install was not in time, empty if all were.
func (o *others) late(installs int) string {
	o.a.t.Helper()
	for done := 0; done < installs && o.a.operator.Survived() == nil; {
		select {
		case <-o.measured:
			done++
		case <-time.After(interval):
		}
	}
	o.stop()
	times := <-o.done
	if len(times) < installs {
		o.a.t.Errorf("another tenant was served %d times, want at least %d", len(times), installs)
	}
	if len(times) == 0 {
		return ""
	}
	slowest := slices.Max(times)
	o.a.t.Logf("%d installs of another tenant, the slowest took %s; the operator needed at most %d MiB",
		len(times), slowest.Round(time.Millisecond), o.a.operator.HighWater()>>20)
	if slowest > o.a.limit || slowest >= givenUp {
		return fmt.Sprintf("another tenant waited %s for an install, want at most %s; all: %v", slowest.Round(time.Millisecond), o.a.limit, times)
	}
	return ""
}
