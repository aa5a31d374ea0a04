package operator

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// An operator is idle if it allocates at most idleMaxAllocs bytes, for timers and probes,
// in an idleCheckInterval. minReleasable is the number of bytes that must have been
// allocated since the last release, because each release runs a garbage collection.
const (
	idleCheckInterval = 2 * time.Second
	idleMaxAllocs     = 1 << 20
	minReleasable     = 8 << 20
)

// memoryReleaser returns unused memory to the system when the operator becomes idle. The Go
// runtime keeps unused memory for the next burst, and GOMEMLIMIT does not change that below
// the limit. Measured with 1,000 custom resources, idle: 94.6 MiB RSS with the releaser and
// 100.8 MiB without (21 and 30 KiB per custom resource; the limit in the benchmark is 20
// KiB).
type memoryReleaser struct {
	// allocated returns the number of bytes allocated so far. release returns unused memory
	// to the system.
	allocated func() uint64
	release   func()
}

func newMemoryReleaser() memoryReleaser {
	return memoryReleaser{allocated: allocated, release: debug.FreeOSMemory}
}

// Start releases memory until the context ends.
func (m memoryReleaser) Start(ctx context.Context) error {
	again := time.NewTicker(idleCheckInterval)
	defer again.Stop()
	var before, released uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		now := m.allocated()
		idle := now-before <= idleMaxAllocs
		before = now
		if idle && now-released >= minReleasable {
			m.release()
			released = m.allocated()
			before = released
		}
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
