package main

import (
	"errors"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr/funcr"
)

func TestLimitMemory_SetsSoftLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, test := range []struct {
		name, environment string
		provider          memlimit.Provider
		want              int64
		log               string
	}{
		{"90% of the container's limit", "", memlimit.Limit(1000 << 20), 900 << 20, `"bytes"=943718400`},
		{"no limit", "", func() (uint64, error) { return 0, memlimit.ErrNoLimit }, math.MaxInt64, ""},
		{"GOMEMLIMIT is set", "300MiB", memlimit.Limit(1000 << 20), 1 << 40, `"bytes"=1099511627776`},
		{"limit not detected", "", func() (uint64, error) { return 0, errors.New("no cgroups") }, 1 << 40, "no cgroups"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The runtime reads the variable when the process starts. Here only its presence
			// matters.
			if test.environment != "" {
				t.Setenv("GOMEMLIMIT", test.environment)
			}
			debug.SetMemoryLimit(1 << 40)
			var log strings.Builder
			limitMemory(test.provider, funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("limit is %d, want %d", got, test.want)
			}
			if test.log == "" && log.Len() > 0 || !strings.Contains(log.String(), test.log) {
				t.Errorf("log is %q, want %q", log.String(), test.log)
			}
		})
	}
}

func TestLimitGarbage_LimitsStartOfLargeHeap(t *testing.T) {
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	original := debug.SetGCPercent(100)
	defer debug.SetGCPercent(original)
	for _, test := range []struct {
		name                         string
		before                       int
		large                        uint64
		loading, starting, afterward uint64
	}{
		{"large heap", 100, 1, startGCPercent, startGCPercent, 100},
		{"small heap", 100, 1 << 40, startGCPercent, 100, 100},
		{"GOGC is smaller", 10, 1, 10, 10, 10},
		{"GOGC is off", -1, 1, math.MaxUint64, math.MaxUint64, math.MaxUint64},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				debug.SetGCPercent(test.before)
				loaded := limitGarbage(test.large)
				loading := percent()
				loaded()
				starting := percent()
				// The clock of the bubble advances immediately.
				<-time.After(startDuration + time.Second)
				synctest.Wait()
				if afterward := percent(); loading != test.loading || starting != test.starting || afterward != test.afterward {
					t.Errorf("got %d%% while charts are loaded, %d%% while kinds are started and %d%% afterward, want %d%%, %d%% and %d%%",
						loading, starting, afterward, test.loading, test.starting, test.afterward)
				}
			})
		})
	}
}
