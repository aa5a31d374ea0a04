package main

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// limitMemory sets the soft memory limit of the Go runtime from the memory limit of the
// container. The garbage collector then runs more often near the limit, where the kernel
// would otherwise kill the process. $GOMEMLIMIT takes precedence. The Go runtime itself
// follows the CPU limit.
func limitMemory(provider memlimit.Provider, logger logr.Logger) {
	limit, err := memlimit.Set(memlimit.WithProvider(provider))
	switch {
	case err != nil:
		logger.Info("memory limit of the container not detected; set $GOMEMLIMIT if there is one", "error", err.Error())
	case limit != math.MaxInt64:
		logger.Info("soft memory limit set", "bytes", limit)
	}
}

// The start of an operator with large charts: startGCPercent is the percentage of garbage in
// its heap until startDuration after the charts are loaded. In a heap smaller than largeHeap,
// this saves little memory.
const (
	startGCPercent = 25
	startDuration  = 10 * time.Second
	largeHeap      = 32 << 20
)

// limitGarbage limits the garbage of the start. The caller calls the returned function when
// the charts are loaded. Most of the heap is then the text of the charts: with the default of
// 100%, the start would need twice its size. The text contains no pointers, so that frequent
// collections take little time. If the heap is not large, the default returns when the charts
// are loaded, because reconciliations of many custom resources would take more time. A
// smaller percentage of $GOGC remains, and so does off.
func limitGarbage(large uint64) (loaded func()) {
	before := debug.SetGCPercent(startGCPercent)
	restore := func() { debug.SetGCPercent(before) }
	if before < startGCPercent {
		restore()
	}
	return func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Uint64() < large {
			restore()
			return
		}
		time.AfterFunc(startDuration, restore)
	}
}
