package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// crowd is the number of concurrent requests of users.
	clientConcurrency = 32
	// calm is the time without activity after which a process counts as idle.
	// calmTicks is the CPU time, in hundredths of a second, that counts as no
	// activity.
	idleTime  = 2 * time.Second
	idleTicks = 4
	// look is the interval at which files are polled.
	pollInterval = 100 * time.Millisecond
	// settleLimit is the maximum wait for an idle process, and someLimit the
	// maximum of any other wait.
	settleLimit = 5 * time.Minute
	someLimit   = 30 * time.Minute
)

// stage is the environment of scenarios: a cluster, its custom resources, and
// the measured process.
type stage struct {
	*cluster
	*subject
	observations *observations
}

// mark is the usage and the number of requests at a time.
type mark struct {
	at     time.Time
	audit  int64
	own    usage
	server usage
}

func (s *stage) mark() (mark, error) {
	m := mark{}
	var err error
	if m.audit, err = s.audit.end(); err != nil {
		return m, err
	}
	if m.own, err = s.usage(); err != nil {
		return m, err
	}
	if m.server, err = readUsage(s.apiServer); err != nil {
		return m, err
	}
	m.at = time.Now()
	return m, nil
}

// begin returns the mark before a measurement, when the API server is idle.
func (s *stage) begin(ctx context.Context) (mark, error) {
	if err := s.rest(ctx); err != nil {
		return mark{}, err
	}
	if s.running() {
		if err := clearPeak(s.cmd.Process.Pid); err != nil {
			return mark{}, fmt.Errorf("reset the peak of %s: %w", s.name, err)
		}
	}
	return s.mark()
}

// finish waits until the process is idle and measures what happened since a
// mark, for the given number of custom resources. The scenario took until the
// given time; its costs include everything until the process was idle.
func (s *stage) finish(ctx context.Context, scenario string, crs int, from mark, until time.Time) (Result, error) {
	if _, err := s.settle(ctx, from.audit); err != nil {
		return Result{}, err
	}
	return s.result(scenario, crs, from, until)
}

func (s *stage) result(scenario string, crs int, from mark, until time.Time) (Result, error) {
	to, err := s.mark()
	if err != nil {
		return Result{}, err
	}
	requests, _, err := s.audit.requests(from.audit, s.user)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Scenario:        scenario,
		Subject:         s.name,
		CRs:             crs,
		Seconds:         until.Sub(from.at).Seconds(),
		CPUSeconds:      (to.own.cpu - from.own.cpu).Seconds(),
		APIServerCPU:    (to.server.cpu - from.server.cpu).Seconds(),
		RSS:             to.own.rss,
		Peak:            to.own.peak,
		Requests:        countRequests(requests),
		ObservedSeconds: to.at.Sub(from.at).Seconds(),
	}, nil
}

// settle waits until the process is idle: it makes no requests and uses almost
// no CPU time. It returns when the idle time began.
func (s *stage) settle(ctx context.Context, offset int64) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit, fmt.Errorf("%s was not idle within %s", s.name, settleLimit))
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	quiet := time.Now()
	var base time.Duration
	for {
		requests, end, err := s.audit.requests(offset, s.user)
		if err != nil {
			return quiet, err
		}
		offset = end
		now, err := s.usage()
		if err != nil {
			return quiet, err
		}
		if countRequests(requests).Total > 0 || now.cpu-base > idleTicks*time.Second/ticks {
			quiet, base = time.Now(), now.cpu
		}
		if time.Since(quiet) >= idleTime {
			return quiet, nil
		}
		select {
		case <-ctx.Done():
			return quiet, context.Cause(ctx)
		case <-again.C:
		}
	}
}

// hold waits for a time, or until the process exits.
func (s *stage) wait(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ended:
		return s.unexpected()
	case <-timer.C:
		return nil
	}
}

// awaitObserved waits for a condition while the process is running.
func (s *stage) awaitObserved(ctx context.Context, a *await) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, someLimit, fmt.Errorf("waited %s", someLimit))
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func(ended <-chan struct{}) {
		select {
		case <-ended:
			end(s.unexpected())
		case <-over:
		}
	}(s.ended)
	return s.observations.wait(ctx, a)
}

// each calls do for each item concurrently, and returns the errors.
func each[T any](items []T, do func(int, T) error) error {
	var wait sync.WaitGroup
	slots := make(chan struct{}, clientConcurrency)
	errs := make([]error, len(items))
	for i, item := range items {
		slots <- struct{}{}
		wait.Go(func() {
			errs[i] = do(i, item)
			<-slots
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// create creates custom resources.
func (s *stage) create(ctx context.Context, of []name, message string) error {
	return each(of, func(_ int, n name) error {
		_, err := s.dynamic.Resource(benches).Namespace(n.namespace).Create(ctx, n.object(message), metav1.CreateOptions{})
		return err
	})
}

// edit changes the spec of a custom resource, and returns its generation.
func (s *stage) edit(ctx context.Context, n name, message string) (int64, error) {
	patch := fmt.Appendf(nil, `{"spec":{"message":%q}}`, message)
	edited, err := s.dynamic.Resource(benches).Namespace(n.namespace).Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	accessor, err := meta.Accessor(edited)
	if err != nil {
		return 0, err
	}
	return accessor.GetGeneration(), nil
}

// remove deletes custom resources and waits until they no longer exist. It
// returns the time of the last deletion.
func (s *stage) remove(ctx context.Context, of []name) (time.Time, error) {
	expected := s.observations.expect(of, gone)
	err := each(of, func(_ int, n name) error {
		return s.dynamic.Resource(benches).Namespace(n.namespace).Delete(ctx, n.name, metav1.DeleteOptions{})
	})
	if err != nil {
		return time.Time{}, err
	}
	return s.awaitObserved(ctx, expected)
}

// serve creates custom resources and waits until they are served.
func (s *stage) serve(ctx context.Context, of []name, message string) (time.Time, error) {
	expected := s.observations.expect(of, served)
	if err := s.create(ctx, of, message); err != nil {
		return time.Time{}, err
	}
	return s.awaitObserved(ctx, expected)
}

// open starts the process, and waits until it has installed and deleted a
// custom resource, so that its one-time work is done.
func (s *stage) open(ctx context.Context, watches string) error {
	offset, err := s.audit.end()
	if err != nil {
		return err
	}
	if err := s.start(watches); err != nil {
		return err
	}
	first := []name{{namespace(0), "first"}}
	if _, err := s.serve(ctx, first, "hello"); err != nil {
		return fmt.Errorf("wait for %s to serve its first custom resource: %w", s.name, err)
	}
	if _, err := s.remove(ctx, first); err != nil {
		return fmt.Errorf("wait for %s to delete its first custom resource: %w", s.name, err)
	}
	_, err = s.settle(ctx, offset)
	return err
}
