package soak

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// hand is the number of events in a round.
const hand = 4

// faultsShare is the share of rounds with faults between the operator and the
// API server, after the first faults.
const faultsShare = 0.7

func TestSoak(t *testing.T) {
	t.Parallel()
	settings := readSettings(t)
	var sum totals
	t.Cleanup(func() { t.Logf("all seeds:\n%s", &sum) })
	for _, seed := range settings.seeds {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			t.Cleanup(func() { sum.add(&w.totals) })
			w.rest()
			for deck := range settings.decks {
				cards := w.shuffle()
				for round := range slices.Chunk(cards, hand) {
					// A slow machine plays few rounds within the time.
					if time.Now().After(settings.until) && w.tested() {
						break
					}
					w.round(deck, round)
				}
			}
			w.end()
			w.totals.faults(w.proxy.Counts())
			t.Logf("seed %d:\n%s", seed, &w.totals)
			if !w.tested() {
				t.Error("no kills or no faults: the run tests less than it should")
			}
		})
	}
}

// tested reports whether the operator was killed and requests have failed.
func (w *world) tested() bool {
	return w.totals.count("kill")+w.totals.count("kill-at-write") > 0 && w.disturbances() > 0
}

// round runs the events of the cards, and waits until everything is at rest.
func (w *world) round(deck int, cards []card) {
	w.t.Helper()
	before := w.disturbances()
	disturbed := w.rng.Float64() < faultsShare || before == 0
	if disturbed {
		w.disturb()
	}
	for _, card := range cards {
		w.keep()
		w.step++
		if what := w.play(card); what != "" {
			w.notef("deck %d step %d: %s: %s", deck, w.step, card.name, what)
			w.totals.inc(card.name)
		}
	}
	w.stir(disturbed, before)
	w.rest()
}

// play applies a card to one suitable custom resource.
// It returns a description of the event, or "".
func (w *world) play(card card) string {
	w.t.Helper()
	if card.world != nil {
		return card.world(w)
	}
	order := w.rng.Perm(len(w.subjects))
	for _, i := range order {
		s := w.subjects[i]
		if !s.alive {
			continue
		}
		if what := card.subject(s); what != "" {
			return strings.TrimSpace(s.String() + " " + what)
		}
	}
	return ""
}
