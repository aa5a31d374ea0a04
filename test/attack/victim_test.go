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
	// promised is the maximum time that a tenant waits for an install during an attack by
	// another tenant.
	promised = 5 * time.Second
	// givenUp is the timeout for one install.
	givenUp = 20 * time.Second
	// requestsOfAnInstall is the number of sequential requests of the operator in an install.
	requestsOfAnInstall = 10
	usualRequest        = 20 * time.Millisecond
	interval            = 100 * time.Millisecond
	// few is the number of installs after a short attack, several the number during a
	// continuous one.
	few, several = 3, 6
)

// measure returns the maximum time that the victim may wait during an attack. On a slow machine
// it is a multiple of the time of an install without an attack.
func (a *arena) measure() time.Duration {
	a.t.Helper()
	o := &others{a: a}
	var slowest time.Duration
	for range few {
		a.probes++
		took, ok := o.install(a.t.Context(), fmt.Sprintf("probe-%d", a.probes))
		if !ok || took == givenUp {
			a.t.Fatal("a custom resource was not installed before the first attack")
		}
		slowest = max(slowest, took)
	}
	if limit := 10 * slowest; limit > promised {
		a.t.Logf("an install without an attack takes %s, so the limit is %s", slowest.Round(time.Millisecond), limit.Round(time.Millisecond))
		return limit
	}
	return promised
}

// others is the load of the victim during an attack: each second it creates a custom resource
// of the kind plain, and measures the time of its install.
type others struct {
	a    *arena
	stop context.CancelFunc
	// done receives the measured times at the end.
	done chan []time.Duration
	// measured receives a value after each measurement.
	measured chan struct{}
}

// watchOthers starts the load of the victim.
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

// install creates one custom resource, waits until it is Ready, and deletes it. It always waits
// for the end of an install. The result does not include the delay of slow requests, because
// no operator can prevent that an attack slows down the API server.
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
	// A request takes some milliseconds on a machine that is not overloaded.
	if mean := asking / requests; mean > usualRequest {
		took = max(0, took-requestsOfAnInstall*(mean-usualRequest))
	}
	return took, o.deleted(ctx, cr)
}

// deleted deletes a custom resource without waiting for the finalizer.
func (o *others) deleted(ctx context.Context, cr *unstructured.Unstructured) bool {
	err := o.a.victim.At(cr).Delete(context.WithoutCancel(ctx), cr.GetName(), metav1.DeleteOptions{})
	if err != nil {
		o.a.t.Errorf("the victim deletes %s: %v", cr.GetName(), err)
	}
	return err == nil
}

// served ends the load of the victim after the given number of installs, and fails the test if
// one of them was not in time.
func (o *others) served(installs int) {
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
		return
	}
	slowest := slices.Max(times)
	o.a.t.Logf("%d installs of another tenant, the slowest took %s; the operator needed at most %d MiB",
		len(times), slowest.Round(time.Millisecond), o.a.operator.HighWater()>>20)
	if slowest > o.a.limit {
		o.a.t.Errorf("another tenant waited %s for an install, want at most %s; all: %v", slowest.Round(time.Millisecond), o.a.limit, times)
	}
}
