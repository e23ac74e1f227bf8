// Package memory keeps the hub within the memory that it may have.
package memory

import (
	"context"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryRatio is how much of the container's memory the Go runtime aims at; the
// rest is for what it does not count.
const memoryRatio = 0.9

// Limit has the garbage collector work harder before the container's memory
// is used up. GOMEMLIMIT in the environment wins.
func Limit(container memlimit.Provider, logger *slog.Logger) {
	limit, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithProvider(container), memlimit.WithRatio(memoryRatio))
	switch {
	case err != nil:
		logger.Debug("the memory limit of the container is not known; set GOMEMLIMIT if there is one", "err", err)
	case limit > 0:
		logger.Info("memory limit set from the cgroup", "bytes", limit)
	}
}

const (
	releaseEvery = 10 * time.Second // between looks
	releaseFrom  = 32 << 20         // bytes for which a release is worth a collection
)

// Release returns memory to the operating system that a burst of work, such
// as a large apply, has left behind. The runtime alone keeps twice what was live at
// its last collection, garbage of the burst included, for minutes.
func Release(ctx context.Context) error {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	r := releaser{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if r.isDue(readMemory()) {
				debug.FreeOSMemory()
				r.released(readMemory())
			}
		}
	}
}

// usage is what the heap takes at one moment.
type usage struct {
	mapped uint64 // bytes that the operating system provides
	cycles uint64 // collections so far
}

func readMemory() usage {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	n := func(i int) uint64 { return samples[i].Value.Uint64() }
	return usage{mapped: n(0) + n(1) + n(2), cycles: n(3)}
}

// releaser decides when a release is due.
type releaser struct {
	last  usage
	floor uint64 // what was mapped after the last release
}

// isDue reports whether the heap has grown by half since the last release, and that the
// burst is over: nothing was collected since the last look, so that little was
// allocated. A busy hub would only ask for the same memory again.
func (r *releaser) isDue(now usage) bool {
	quiet := now.cycles == r.last.cycles
	r.last = now
	return quiet && now.mapped > r.floor+max(r.floor/2, releaseFrom)
}

func (r *releaser) released(now usage) { r.last, r.floor = now, now.mapped }
