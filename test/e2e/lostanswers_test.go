package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The connection breaks at each write of each action: before the request
// reaches the API server, or after the request was processed, so that a write
// that seems to have failed has succeeded; with $CHARTWRIGHT_LONG, at each write in both ways,
// and otherwise at every third. The operator keeps running, and must reach the usual final
// state.
func TestLostResponses_AtEachWrite(t *testing.T) {
	t.Parallel()
	for _, verb := range verbs {
		t.Run(verb.name, func(t *testing.T) {
			t.Parallel()
			loseResponses(t, verb)
		})
	}
}

func TestLostResponses_AtEachWriteOfUpgradeWithHook(t *testing.T) {
	t.Parallel()
	loseResponses(t, hookedUpgrade)
}

func loseResponses(t *testing.T, verb verb) {
	t.Helper()
	// The first write, and which other writes.
	first, step, least := []int{1, 2}, 3, 2
	if testenv.Long() {
		first, step, least = []int{1, 1}, 1, 5
	}
	k := serveKilled(t)
	for i, moment := range []harness.Moment{harness.BeforeWrite, harness.AfterWrite} {
		points := 0
		for write, misses := first[i], 0; misses < 2; write += step {
			if k.continues(verb, write, moment) {
				points++
			} else {
				misses++
			}
		}
		if points < least {
			t.Errorf("%d points %s a write: the proxy misses writes", points, moment)
		}
	}
}

// continues breaks the connection at one write of an action. It returns false
// if the action has fewer writes.
func (k killed) continues(verb verb, write int, moment harness.Moment) bool {
	k.T().Helper()
	name := fmt.Sprintf("%s-%d", moment, write)
	verb.ready(k, name)
	trap := k.proxy.Trap(write, moment, func() {})
	verb.do(k, name)
	k.Wait(fmt.Sprintf("%s to be done, with the connection lost %s write %d", name, moment, write), func(ctx context.Context) error {
		if err := verb.done(ctx, k, name); err != nil {
			call, _ := trap.Fired()
			return fmt.Errorf("after %s: %w", call, err)
		}
		return nil
	})
	_, lost := trap.Fired()
	k.proxy.Trap(0, moment, nil)
	return lost
}
