package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// install makes custom resources, so many at once.
func (s *stage) install(ctx context.Context, of []name, atOnce int) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	var last time.Time
	for some := range slices.Chunk(of, atOnce) {
		if last, err = s.serve(ctx, some, "hello"); err != nil {
			return Result{}, err
		}
	}
	return s.finish(ctx, scenarioInstall, len(of), from, last)
}

// upgrade edits all specs at once. One object of four changes.
func (s *stage) upgrade(ctx context.Context, of []name) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	expected := s.sights.expect(of, s.sights.servedNext(of))
	err = each(of, func(_ int, n name) error {
		_, err := s.edit(ctx, n, "edited")
		return err
	})
	if err != nil {
		return Result{}, err
	}
	last, err := s.awaitSights(ctx, expected)
	if err != nil {
		return Result{}, err
	}
	return s.finish(ctx, scenarioUpgrade, len(of), from, last)
}

// deleteAll deletes all custom resources at once.
func (s *stage) deleteAll(ctx context.Context, of []name) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	last, err := s.remove(ctx, of)
	if err != nil {
		return Result{}, err
	}
	return s.finish(ctx, scenarioDelete, len(of), from, last)
}

// idle does nothing for a while.
func (s *stage) idle(ctx context.Context, crs int, duration time.Duration) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := s.hold(ctx, duration); err != nil {
		return Result{}, err
	}
	r, err := s.result(scenarioIdle, crs, from, time.Now())
	if err != nil {
		return Result{}, err
	}
	minutes := r.Seconds / 60
	return r.with("CPU per CR and minute", ratio(r.cpuPerCR(), minutes), "ms").
		with("requests per CR and minute", ratio(r.requests(), minutes), ""), nil
}

// restart kills the process, and starts another one.
func (s *stage) restart(ctx context.Context, crs int, watches string) (Result, error) {
	return s.restartAfter(ctx, scenarioRestart, crs, watches, func() error { return nil })
}

// restartAfter kills the process, and starts another one after a change.
func (s *stage) restartAfter(ctx context.Context, scenario string, crs int, watches string, change func() error) (Result, error) {
	if err := s.kill(); err != nil {
		return Result{}, err
	}
	if err := change(); err != nil {
		return Result{}, err
	}
	server, err := readUsage(s.apiServer)
	if err != nil {
		return Result{}, err
	}
	offset, err := s.audit.end()
	if err != nil {
		return Result{}, err
	}
	// A new process has used up nothing.
	from := mark{at: time.Now(), audit: offset, server: server}
	if err := s.start(watches); err != nil {
		return Result{}, err
	}
	quiet, err := s.settle(ctx, offset)
	if err != nil {
		return Result{}, err
	}
	// What it does at its leisure counts, too.
	if err := s.hold(ctx, leisure); err != nil {
		return Result{}, err
	}
	r, err := s.result(scenario, crs, from, quiet)
	if err != nil {
		return r, err
	}
	return r.with("writes", float64(r.Requests.Writes), ""), nil
}

// leisure is how long a process that was started is looked at after it has come
// to rest.
const leisure = 5 * time.Second

// rollout starts a process with a new version of the chart, which all custom
// resources are to get.
func (s *stage) rollout(ctx context.Context, of []name, watches string) (Result, error) {
	if err := s.stop(); err != nil {
		return Result{}, err
	}
	server, err := readUsage(s.apiServer)
	if err != nil {
		return Result{}, err
	}
	offset, err := s.audit.end()
	if err != nil {
		return Result{}, err
	}
	from := mark{at: time.Now(), audit: offset, server: server}
	expected := s.sights.expect(of, runs(nextVersion))
	if err := s.start(watches); err != nil {
		return Result{}, err
	}
	last, err := s.awaitSights(ctx, expected)
	if err != nil {
		return Result{}, err
	}
	return s.finish(ctx, scenarioRollout, len(of), from, last)
}

// memory is what it takes to hold custom resources, all at rest.
func memory(none int64, results []Result) (Result, error) {
	r := Result{Scenario: scenarioMemory}
	mebi := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	r = r.with("RSS at 0", mebi(none), "MiB")
	for _, from := range results {
		r.Subject, r.CRs = from.Subject, from.CRs
		r.Peak = max(r.Peak, from.Peak)
		switch from.Scenario {
		case scenarioIdle, scenarioRestart:
			r.RSS = from.RSS
			r = r.with("RSS at N, "+from.Scenario, mebi(from.RSS), "MiB").
				with("RSS per CR, "+from.Scenario, ratio(float64(from.RSS-none)/1024, float64(from.CRs)), "KiB")
		}
	}
	if r.RSS == 0 {
		return r, errors.New("nothing was measured at rest")
	}
	return r.with("peak of all", mebi(r.Peak), "MiB"), nil
}
