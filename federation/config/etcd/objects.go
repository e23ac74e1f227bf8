package etcd

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/semaphore"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/wake"
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
	store  *Store
	client *clientv3.Client
	o      *ConfigOptions
	step   *steps
	read   records
	write  writer
	states *cache
	points *checkpointer
	health *health
}

// steps observes each step of a write before it is made, and of reads for people;
// for tests. An error stops the write there, as a crash would.
type steps struct{ reach func(name string) error }

// Config returns the configuration in the store. It lives as long as the store.
func (s *Store) Config(o ConfigOptions) *Config {
	o.fill()
	step := &steps{reach: func(string) error { return nil }}
	read := records{client: s.client, epoch: s.epoch, o: &o}
	write := writer{store: s, client: s.client, o: &o, step: step, read: read}
	newest := &atomic.Pointer[mark]{}
	return &Config{
		store: s, client: s.client, o: &o, step: step, read: read, write: write,
		states: &cache{o: &o, read: read, mark: newest, turn: semaphore.NewWeighted(1), made: wake.New()},
		points: &checkpointer{client: s.client, o: &o, write: write, mark: newest, asked: make(chan checkpointRequest, 1)},
		health: &health{store: s, client: s.client, o: &o, step: step},
	}
}

// Kinds is part of config.Source.
func (c *Config) Kinds() []federation.Kind { return c.o.Kinds }

// within limits a read of the history.
func (o *ConfigOptions) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*o.Patience)
}
