package operator

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// restLook is how often it is looked whether the operator rests, and
	// restAllocates what one that rests allocates in that time at most: timers
	// and probes, in bytes.
	restLook      = 2 * time.Second
	restAllocates = 1 << 20
	// worthwhile is how much has to have been allocated since memory was last
	// given back, in bytes: to do so is a collection.
	worthwhile = 8 << 20
)

// thrift gives memory back to the system when the operator comes to rest. The
// runtime would keep about as much again as is in use, for the next burst,
// which for an operator that rests most of its life is a second operator's
// memory.
type thrift struct {
	// allocated is how many bytes were ever allocated, and giveBack gives back
	// what is not in use.
	allocated func() uint64
	giveBack  func()
}

func newThrift() thrift {
	return thrift{allocated: allocated, giveBack: debug.FreeOSMemory}
}

// Start looks until the context ends.
func (t thrift) Start(ctx context.Context) error {
	again := time.NewTicker(restLook)
	defer again.Stop()
	var before, given uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		now := t.allocated()
		rests := now-before <= restAllocates
		before = now
		if rests && now-given >= worthwhile {
			t.giveBack()
			given = t.allocated()
			before = given
		}
	}
}

// NeedLeaderElection answers no: a standby rests the most.
func (thrift) NeedLeaderElection() bool { return false }

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
