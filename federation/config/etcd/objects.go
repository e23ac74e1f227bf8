package etcd

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation"
)

// What a Meter counts.
const (
	CountCommits     = "commits"
	CountConflicts   = "conflicts"   // commits that came too late
	CountOrphans     = "orphans"     // staged transactions that were never committed and are collected
	CountRetired     = "retired"     // records and checkpoints that are older than the history
	CountCheckpoints = "checkpoints" // made here
	CountQuarantined = "quarantined" // stored values found unusable
	CountMissing     = "missing"     // records that the log names and that are not there
)

// Meter counts what happens to the store. It does not block.
type Meter interface{ Count(what string, n int) }

type noMeter struct{}

func (noMeter) Count(string, int) {}

// ConfigOptions are the rules of a Config. Zero means the default.
type ConfigOptions struct {
	Kinds  []federation.Kind // that the source gives
	Logger *slog.Logger
	Meter  Meter
	// Retain is how many records are kept at least; default 1000.
	Retain int64
	// CheckpointRecords is after how many records a checkpoint is made; default
	// 250. It is made sooner when the records outweigh the objects.
	CheckpointRecords int64
	// Patience is how long a small write may take; default 5 s. Reads of the
	// history have twice as long.
	Patience time.Duration
	Probe    time.Duration // between looks at whether the store answers; default 2 s
	Sweep    time.Duration // between collections; default 1 min
	// OrphanAge is how long a staged transaction must have been seen without being
	// committed before it is collected; default 10 min.
	OrphanAge time.Duration
	Now       func() time.Time
}

func (o *ConfigOptions) fill() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Retain, o.CheckpointRecords = or(o.Retain, 1000), or(o.CheckpointRecords, 250)
	o.Patience, o.Probe = or(o.Patience, 5*time.Second), or(o.Probe, 2*time.Second)
	o.Sweep, o.OrphanAge = or(o.Sweep, time.Minute), or(o.OrphanAge, 10*time.Minute)
}

func or[N int64 | time.Duration](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}

// Config is the configuration in the store: a config.Source, config.Log and
// config.Leases. Its methods may be called at the same time, Run included.
type Config struct {
	store      *Store
	client     *clientv3.Client
	o          ConfigOptions
	turn       chan struct{}              // taken while newest moves
	newest     atomic.Pointer[state]      // nil: nothing read yet
	mark       atomic.Pointer[mark]       // nil: nothing read yet
	roomMade   atomic.Int64               // etcd's revision when room was last made
	diskFull   atomic.Bool                // as it was logged
	made       chan struct{}              // something was committed here that the follower may not know of
	making     atomic.Pointer[transition] // the commit that is being made here; nil: none
	checkpoint chan wanted
	quiet      quiet
	roundTrip  atomic.Int64 // to the member that answered last of all when they were last asked, in ns
	// step is called between the steps of a write with the name of the next one, and
	// before a read for people; for tests. An error stops the write there, as a crash
	// would.
	step func(name string) error
}

// Config returns the configuration in the store. It lives as long as the store.
func (s *Store) Config(o ConfigOptions) *Config {
	o.fill()
	return &Config{store: s, client: s.client, o: o, turn: make(chan struct{}, 1), made: make(chan struct{}, 1), checkpoint: make(chan wanted, 1), step: func(string) error { return nil }}
}

// Kinds is part of config.Source.
func (c *Config) Kinds() []federation.Kind { return c.o.Kinds }

// within limits a read of the history.
func (c *Config) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*c.o.Patience)
}
