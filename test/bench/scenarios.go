package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// install creates custom resources, with limited concurrency.
func (s *stage) install(ctx context.Context, of []name, concurrency int) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	var last time.Time
	for some := range slices.Chunk(of, concurrency) {
		if last, err = s.serve(ctx, some, "hello"); err != nil {
			return Result{}, err
		}
	}
	return s.finish(ctx, scenarioInstall, len(of), from, last)
}

// upgrade edits all specs at once. This changes one of four objects.
func (s *stage) upgrade(ctx context.Context, of []name) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	expected := s.observations.expect(of, s.observations.servedNext(of))
	err = each(of, func(_ int, n name) error {
		_, err := s.edit(ctx, n, "edited")
		return err
	})
	if err != nil {
		return Result{}, err
	}
	last, err := s.awaitObserved(ctx, expected)
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

// idle waits for some time without any changes.
func (s *stage) idle(ctx context.Context, crs int, duration time.Duration) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := s.wait(ctx, duration); err != nil {
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

// restartAfter kills the process, makes a change, and starts another process.
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
	// The usage of a new process starts at zero.
	from := mark{at: time.Now(), audit: offset, server: server}
	if err := s.start(watches); err != nil {
		return Result{}, err
	}
	quiet, err := s.settle(ctx, offset)
	if err != nil {
		return Result{}, err
	}
	// Include what the process does some time after its start.
	if err := s.wait(ctx, leisure); err != nil {
		return Result{}, err
	}
	r, err := s.result(scenario, crs, from, quiet)
	if err != nil {
		return r, err
	}
	return r.with("writes", float64(r.Requests.Writes), ""), nil
}

// leisure is how long a process is observed after it has become idle.
const leisure = 5 * time.Second

// rollout starts a process with a new version of the chart, which is rolled out
// to all custom resources.
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
	expected := s.observations.expect(of, runs(nextVersion))
	if err := s.start(watches); err != nil {
		return Result{}, err
	}
	last, err := s.awaitObserved(ctx, expected)
	if err != nil {
		return Result{}, err
	}
	return s.finish(ctx, scenarioRollout, len(of), from, last)
}

// memory summarizes the memory that idle custom resources need.
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
		return r, errors.New("no measurement of an idle process")
	}
	return r.with("peak of all", mebi(r.Peak), "MiB"), nil
}
