package main

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryRatio is how much of the container's memory the Go runtime aims at; the
// rest is for what it does not count.
const memoryRatio = 0.9

// limitMemory has the garbage collector work harder before the container's memory
// is used up. GOMEMLIMIT in the environment wins.
func limitMemory(container memlimit.Provider, logger *slog.Logger) {
	limit, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithProvider(container), memlimit.WithRatio(memoryRatio))
	switch {
	case err != nil:
		logger.Debug("the memory limit of the container is not known; set GOMEMLIMIT if there is one", "err", err)
	case limit > 0:
		logger.Info("memory limit set from the cgroup", "bytes", limit)
	}
}
