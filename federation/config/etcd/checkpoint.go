package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
)

// mark is the newest checkpoint that this process knows of.
type mark struct{ revision, weight int64 }

// due tells that a checkpoint is worth its bytes. While a stored value is not
// usable none is made: the value stays where it can be repaired.
func (c *Config) due(s *state) bool {
	const small = 4 << 20
	m := c.mark.Load()
	if m == nil || s.suspects.Len() > 0 || s.revision <= m.revision {
		return false
	}
	return s.revision-m.revision >= c.o.CheckpointRecords || s.weight-m.weight > max(small, 2*s.live)
}

// makeCheckpoint writes every object of the state and makes that known. When
// another replica was quicker, or time or space are lacking, it is left for
// later.
func (c *Config) makeCheckpoint(ctx context.Context, s *state) error {
	limited, cancel := context.WithTimeout(ctx, 2*c.o.Patience+time.Duration(s.live>>20)*time.Second)
	defer cancel()
	err := c.writeCheckpoint(limited, s)
	var refused *config.Refused
	if errors.As(fault("making a checkpoint", err), &refused) || errors.Is(err, errCollected) {
		c.o.Logger.Warn("a checkpoint could not be made", "error", err)
		err = nil
	}
	if err == nil {
		c.mark.Store(&mark{revision: s.revision, weight: s.weight})
	}
	return err
}

func (c *Config) writeCheckpoint(ctx context.Context, s *state) error {
	known, err := c.client.Get(ctx, checkpointKey(s.revision), clientv3.WithCountOnly())
	if err != nil || known.Count > 0 {
		return err
	}
	d := &draft{index: index{Revision: s.revision, Previous: s.hash}}
	s.objects.Root().Walk(func(_ []byte, o *config.Object) bool {
		d.add(entry{Key: o.Key, Action: config.Created, APIVersion: o.APIVersion, Revision: o.Revision}, o.Manifest)
		return false
	})
	t, err := c.stage(ctx, d)
	if err != nil {
		return err
	}
	value, err := sealed(checkpoint{Revision: s.revision, Tx: t.id, Hash: t.hash, Record: s.hash})
	if err != nil {
		return err
	}
	key := checkpointKey(s.revision)
	answer, err := c.publish(ctx, t, publication{
		revision: s.revision,
		// The record that it stands for is still the one of that revision.
		ifs:  []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0), clientv3.Compare(clientv3.CreateRevision(logKey(s.revision)), ">", 0)},
		puts: []clientv3.Op{clientv3.OpPut(key, value)},
	})
	if err != nil {
		return fmt.Errorf("making a checkpoint: %w", err)
	}
	if !answer.Succeeded {
		c.discard(ctx, t)
		return nil
	}
	c.o.Meter.Count(CountCheckpoints, 1)
	return nil
}
