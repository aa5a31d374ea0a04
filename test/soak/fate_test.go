package soak

import (
	"context"
	"fmt"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Events that affect the operator, or a whole namespace.

func (w *world) kill() string {
	if !w.operator.Running() {
		return ""
	}
	w.operator.Kill()
	w.operator.Launch()
	return "the operator is killed"
}

// killAtWrite kills the operator at one of its next writes.
func (w *world) killAtWrite() string {
	if w.trap != nil {
		return ""
	}
	write := 1 + w.rng.IntN(12)
	moment := []harness.Moment{harness.BeforeWrite, harness.AfterWrite}[w.rng.IntN(2)]
	w.trap = w.operator.KillAtWrite(write, moment)
	w.busy()
	return fmt.Sprintf("the operator will be killed %s its write %d", moment, write)
}

// stop first waits until the operator is ready, because a process that has just
// started exits on any signal.
func (w *world) stop() string {
	if w.trap != nil {
		return ""
	}
	w.Wait("the operator to be ready", func(ctx context.Context) error {
		w.keep()
		return w.operator.Probe(ctx, "/healthz")
	})
	w.operator.Stop()
	w.operator.Launch()
	return "the operator is stopped"
}

// deleteNamespace deletes the last of the namespaces with its contents.
func (w *world) deleteNamespace() string {
	if w.placeGone {
		return ""
	}
	place := w.places[len(w.places)-1]
	for _, s := range w.subjects {
		if s.env != place {
			continue
		}
		if s.alive && s.pause == "including-deletion" {
			s.startTheClock()
		}
		s.alive, s.strangers = false, nil
	}
	w.placeGone = true
	w.Delete(harness.Object("v1", "Namespace", place.Namespace))
	return place.Namespace
}
