package operator

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemoryReleaser: memory is released once after each burst, and never during a burst or
// without allocations.
func TestMemoryReleaser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var allocated, given atomic.Uint64
		releaser := memoryReleaser{allocated: allocated.Load, release: func() { given.Add(1) }}
		go func() {
			if err := releaser.Start(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		for _, step := range []struct {
			name      string
			allocates uint64
			looks     int
			want      uint64
		}{
			{"it starts", 20 << 20, 1, 0},
			{"it is still at work", 5 << 20, 3, 0},
			{"it rests", 1 << 10, 1, 1},
			{"still idle", 1 << 10, 100, 1},
			{"a little is done", 2 << 20, 1, 1},
			{"which is not worth it", 0, 3, 1},
			{"much is done", 9 << 20, 1, 1},
			{"and over", 0, 1, 2},
		} {
			for range step.looks {
				allocated.Add(step.allocates)
				// The clock of the bubble advances immediately.
				<-time.After(idleCheckInterval)
				synctest.Wait()
			}
			if got := given.Load(); got != step.want {
				t.Errorf("%s: memory was released %d times, want %d", step.name, got, step.want)
			}
		}
	})
}
