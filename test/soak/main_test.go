package soak

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// settings are read from environment variables.
type settings struct {
	seeds []uint64
	decks int
	until time.Time
}

func readSettings(t *testing.T) settings {
	t.Helper()
	// Short enough to be part of every test run.
	s := settings{seeds: []uint64{1}, decks: 1, until: time.Now().Add(60 * time.Second)}
	if text := os.Getenv("CHARTWRIGHT_SOAK_SEEDS"); text != "" {
		s.seeds = nil
		for seed := range strings.SplitSeq(text, ",") {
			n, err := strconv.ParseUint(strings.TrimSpace(seed), 10, 64)
			if err != nil {
				t.Fatalf("CHARTWRIGHT_SOAK_SEEDS: %v", err)
			}
			s.seeds = append(s.seeds, n)
		}
	}
	if text := os.Getenv("CHARTWRIGHT_SOAK_DECKS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("CHARTWRIGHT_SOAK_DECKS: %v", err)
		}
		s.decks = n
	}
	if text := os.Getenv("CHARTWRIGHT_SOAK_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("CHARTWRIGHT_SOAK_TIME: %v", err)
		}
		s.until = time.Now().Add(d)
	}
	return s
}
