package soak

import (
	"context"
	"fmt"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Events that affect the operator or a whole namespace.

func (w *world) kill() string {
	if !w.operator.Running() {
		return ""
	}
	w.operator.Kill()
	w.operator.Launch()
	return "operator killed"
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
	return fmt.Sprintf("operator will be killed %s write %d", moment, write)
}

// stop stops the operator once it responds. A process that has just started would end on any
// signal without a shutdown.
func (w *world) stop() string {
	if w.trap != nil {
		return ""
	}
	w.Wait("the operator to answer", func(ctx context.Context) error {
		w.keep()
		return w.operator.Probe(ctx, "/healthz")
	})
	w.operator.Stop()
	w.operator.Launch()
	return "operator stopped"
}

// deleteNamespace deletes the last namespace with all its objects.
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
			s.removePause()
		}
		s.alive = false
	}
	w.placeGone = true
	w.Delete(harness.Object("v1", "Namespace", place.Namespace))
	return place.Namespace
}
