package main

import (
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// limitMemory lets the garbage collector know of the container's memory limit,
// by the soft limit of the Go runtime: it then works harder near the limit,
// where the kernel would otherwise end the process. The number of threads
// follows the container's CPU limit by the runtime itself. $GOMEMLIMIT wins.
func limitMemory(provider memlimit.Provider, logger logr.Logger) {
	limit, err := memlimit.Set(memlimit.WithProvider(provider))
	switch {
	case err != nil:
		// It is a help, and all works without it.
		logger.Info("the memory limit of the container is not known, and the garbage collector does not heed it; set $GOMEMLIMIT where there is one", "error", err.Error())
	case limit != math.MaxInt64:
		logger.Info("the garbage collector heeds a memory limit", "bytes", limit)
	}
}
