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
	// samples is how many edits are timed, and behindLimit how long at most: an
	// edit that waits for the whole queue takes that long.
	samples     = 200
	behindLimit = 5 * time.Minute
	// editors edit at once, each one resource after another, and none faster
	// than people do: the installs are to be what keeps the operator busy.
	editors  = 4
	editRest = 250 * time.Millisecond
)

// oneBehindMany edits single custom resources while so many installs queue. It
// returns the names of those that were made for the queue.
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
	last, err := s.awaitSights(ctx, s.sights.expect(q.made, served))
	if err != nil {
		return Result{}, q.made, err
	}
	r, err := s.finish(ctx, scenarioBehind, len(q.made), from, last)
	return r.with("edits", float64(len(all)), "").
		with("p50", milliseconds(median(all)), "ms").
		with("p99", milliseconds(percentile(all, 99)), "ms").
		with("worst", milliseconds(percentile(all, 100)), "ms"), q.made, err
}

// timeEdits edits custom resources, and returns how long each edit took. The
// last one of each editor is timed to its end.
func (s *stage) timeEdits(ctx context.Context, of []name) ([]time.Duration, error) {
	var edits atomic.Int64
	until := time.Now().Add(behindLimit)
	times := make([][]time.Duration, editors)
	err := each(times, func(i int, _ []time.Duration) error {
		again := time.NewTicker(editRest)
		defer again.Stop()
		// Each has custom resources of its own.
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

// timeEdit edits a custom resource and returns how long it took until that was
// done.
func (s *stage) timeEdit(ctx context.Context, n name, message string) (time.Duration, error) {
	began := time.Now()
	generation, err := s.edit(ctx, n, message)
	if err != nil {
		return 0, err
	}
	if _, err := s.awaitSights(ctx, s.sights.expect([]name{n}, servedAt(generation))); err != nil {
		return 0, err
	}
	return s.sights.get(n).at.Sub(began), nil
}

// queuing makes installs for the operator to be busy with.
type queuing struct {
	*stage
	size int
	made []name
	// batch are those that were made last.
	batch []name
}

// fill makes as many as are to queue.
func (q *queuing) fill(ctx context.Context) error {
	q.batch = names("queued", len(q.made), q.size)
	q.made = append(q.made, q.batch...)
	return q.create(ctx, q.batch, "hello")
}

// keep fills the queue again whenever it is half empty, until the editing ends.
func (q *queuing) keep(ctx context.Context, editing <-chan error) error {
	for {
		half := q.sights.expect(q.batch[:len(q.batch)/2], served)
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
