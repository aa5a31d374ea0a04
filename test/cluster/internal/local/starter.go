package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

// lastLines is the number of log lines in the error about a component that
// exited.
const lastLines = 15

// starter starts components, and cancels the start if one of them exits.
type starter struct {
	plan   *plan
	state  *state
	client *http.Client
	// fail cancels the context of the start.
	fail context.CancelCauseFunc
}

// start starts a component and stores its process ID immediately, so that it
// can be stopped after any later failure.
func (s *starter) start(p *part) error {
	closeAll(p.ports)
	log := s.plan.folder.log(p.name)
	started, err := process.Start(log, p.program, p.args...)
	if err != nil {
		return err
	}
	return s.record(p, log, started)
}

// record stores the process ID of a component, and watches the process.
func (s *starter) record(p *part, log string, started *process.Process) error {
	s.state.Parts = append(s.state.Parts, partState{Name: p.name, Process: started.Ref, Health: p.health})
	go func() {
		<-started.Done()
		s.fail(fmt.Errorf("%s exited: %w\nThe last lines of its log (%s):\n%s", p.name, started.Err(), log, tail(log)))
	}()
	return s.plan.folder.writeState(s.state)
}

// await waits until a component is ready.
func (s *starter) await(ctx context.Context, p *part) error {
	began := time.Now()
	err := waitFor(ctx, p.name, func(ctx context.Context) error { return healthy(ctx, s.client, p.health) })
	if err != nil {
		return err
	}
	s.plan.Progress("%-24s ready after %4.1f s  %s", p.name, time.Since(began).Seconds(), p.health)
	return nil
}

// awaitAll waits for several components concurrently.
func (s *starter) awaitAll(ctx context.Context, parts ...*part) error {
	results := make(chan error)
	for _, p := range parts {
		go func() { results <- s.await(ctx, p) }()
	}
	all := make([]error, 0, len(parts))
	for range parts {
		all = append(all, <-results)
	}
	// If a component exited, all waits fail for this reason: report it once.
	for _, err := range all {
		if err != nil && errors.Is(err, context.Cause(ctx)) {
			return err
		}
	}
	return errors.Join(all...)
}

// tail returns the last lines of a log.
func tail(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-lastLines):], "\n  ")
}
