package main

import (
	"math"

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
