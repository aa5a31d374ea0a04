package main

import (
	"context"
	"time"
)

const (
	// foreign is the number of kinds that the scenario crds installs. starts is
	// the number of measured starts without and with them.
	foreign = 500
	starts  = 15
)

// start is the cost of one start.
type start struct{ seconds, cpu, rss, peak float64 }

// crds compares starts with many foreign kinds in the cluster with starts
// without them.
func (s *stage) crds(ctx context.Context, watches string) (Result, error) {
	without, err := s.startAFewTimes(ctx, watches)
	if err != nil {
		return Result{}, err
	}
	if err := s.define(ctx, foreignKinds(foreign)...); err != nil {
		return Result{}, err
	}
	with, err := s.startAFewTimes(ctx, watches)
	if err != nil {
		return Result{}, err
	}
	r := Result{Scenario: scenarioCRDs, Subject: s.name, Seconds: with.seconds, CPUSeconds: with.cpu, RSS: int64(with.rss), Peak: int64(with.peak)}
	percent := func(with, without float64) float64 { return 100 * (ratio(with, without) - 1) }
	r = r.with("time without", 1000*without.seconds, "ms").with("time with 500", 1000*with.seconds, "ms").
		with("time more", percent(with.seconds, without.seconds), "%").
		with("CPU more", percent(with.cpu, without.cpu), "%").
		with("RSS without", without.rss/(1<<20), "MiB").with("RSS with 500", with.rss/(1<<20), "MiB").
		with("RSS more", percent(with.rss, without.rss), "%").
		with("peak more", percent(with.peak, without.peak), "%")
	return r, nil
}

// startAFewTimes returns the medians of several starts. A start is complete
// when a first custom resource is reconciled; memory is measured when the
// process is idle.
func (s *stage) startAFewTimes(ctx context.Context, watches string) (start, error) {
	var seconds, cpu, rss, peak []float64
	for range starts {
		if err := s.stop(); err != nil {
			return start{}, err
		}
		first := []name{{namespace(0), "first"}}
		if err := s.rest(ctx); err != nil {
			return start{}, err
		}
		if err := s.create(ctx, first, "hello"); err != nil {
			return start{}, err
		}
		offset, err := s.audit.end()
		if err != nil {
			return start{}, err
		}
		began := time.Now()
		expected := s.observations.expect(first, served)
		if err := s.start(watches); err != nil {
			return start{}, err
		}
		last, err := s.awaitObserved(ctx, expected)
		if err != nil {
			return start{}, err
		}
		if _, err := s.settle(ctx, offset); err != nil {
			return start{}, err
		}
		used, err := s.usage()
		if err != nil {
			return start{}, err
		}
		seconds, cpu = append(seconds, last.Sub(began).Seconds()), append(cpu, used.cpu.Seconds())
		rss, peak = append(rss, float64(used.rss)), append(peak, float64(used.peak))
		if _, err := s.remove(ctx, first); err != nil {
			return start{}, err
		}
	}
	return start{medianOf(seconds), medianOf(cpu), medianOf(rss), medianOf(peak)}, nil
}
