package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// samples is the maximum number of edits, and behindLimit the maximum
	// duration of the measurement: an edit that waits for the whole queue takes
	// that long.
	samples     = 200
	behindLimit = 5 * time.Minute
	// editors edit concurrently, each one resource after another, and not
	// faster than users do, so that mainly the installs keep the operator busy.
	editors  = 4
	editRest = 250 * time.Millisecond
)

// oneBehindMany edits single custom resources while many installs are queued.
// It returns the names of the resources created for the queue.
func (s *stage) oneBehindMany(ctx context.Context, of []name, queue int) (Result, []name, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	q := &queuing{stage: s, size: queue}
	if err := q.fill(ctx); err != nil {
		return Result{}, q.made, err
	}
	var all []time.Duration
	editing := make(chan error, 1)
	go func() {
		var err error
		all, err = s.timeEdits(ctx, of)
		editing <- err
	}()
	if err := q.keep(ctx, editing); err != nil {
		return Result{}, q.made, err
	}
	last, err := s.awaitObserved(ctx, s.observations.expect(q.made, served))
	if err != nil {
		return Result{}, q.made, err
	}
	r, err := s.finish(ctx, scenarioBehind, len(q.made), from, last)
	return r.with("edits", float64(len(all)), "").
		with("p50", milliseconds(median(all)), "ms").
		with("p99", milliseconds(percentile(all, 99)), "ms").
		with("worst", milliseconds(percentile(all, 100)), "ms"), q.made, err
}

// timeEdits edits custom resources, and returns the duration of each edit. It
// waits until the last edit of each editor is complete.
func (s *stage) timeEdits(ctx context.Context, of []name) ([]time.Duration, error) {
	var edits atomic.Int64
	until := time.Now().Add(behindLimit)
	times := make([][]time.Duration, editors)
	err := each(times, func(i int, _ []time.Duration) error {
		again := time.NewTicker(editRest)
		defer again.Stop()
		// Each editor has its own custom resources.
		for next := i; edits.Load() < samples && time.Now().Before(until); next += editors {
			took, err := s.timeEdit(ctx, of[next%len(of)], fmt.Sprintf("edit %d", next))
			if err != nil {
				return err
			}
			times[i] = append(times[i], took)
			edits.Add(1)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-again.C:
			}
		}
		return nil
	})
	return slices.Concat(times...), err
}

// timeEdit edits a custom resource and returns the time until the edit was
// applied.
func (s *stage) timeEdit(ctx context.Context, n name, message string) (time.Duration, error) {
	began := time.Now()
	generation, err := s.edit(ctx, n, message)
	if err != nil {
		return 0, err
	}
	if _, err := s.awaitObserved(ctx, s.observations.expect([]name{n}, servedAt(generation))); err != nil {
		return 0, err
	}
	return s.observations.get(n).at.Sub(began), nil
}

// queuing creates installs that keep the operator busy.
type queuing struct {
	*stage
	size int
	made []name
	// batch are the custom resources created last.
	batch []name
}

// fill creates as many custom resources as should be queued.
func (q *queuing) fill(ctx context.Context) error {
	q.batch = names("queued", len(q.made), q.size)
	q.made = append(q.made, q.batch...)
	return q.create(ctx, q.batch, "hello")
}

// keep refills the queue whenever it is half empty, until the editing ends.
func (q *queuing) keep(ctx context.Context, editing <-chan error) error {
	for {
		half := q.observations.expect(q.batch[:len(q.batch)/2], served)
		select {
		case err := <-editing:
			return err
		case <-half.done:
			if err := q.fill(ctx); err != nil {
				return err
			}
		case <-q.ended:
			return errors.Join(q.unexpected(), <-editing)
		}
	}
}
