package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
)

// storage says when the store takes no writes, or soon will not. An embedded
// store that is full is compacted and defragmented here, and takes writes again
// when that made room: nobody else can do it, and nobody else uses it.
func (c *Config) storage(ctx context.Context) []config.Problem {
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	var problems []config.Problem
	for _, endpoint := range c.endpoints() {
		s, err := c.client.Status(ctx, endpoint)
		if err != nil {
			continue // the head is read through any member that answers
		}
		full := slices.ContainsFunc(s.Errors, func(e string) bool { return strings.Contains(e, etcdserverpb.AlarmType_NOSPACE.String()) })
		if full && c.store.server != nil {
			var err error
			if full, err = c.makeRoom(ctx, endpoint); err != nil {
				c.o.Logger.Warn("making room in the store failed", "error", err)
			}
		}
		switch {
		case full:
			return []config.Problem{{Code: codeStorageFull, Message: fmt.Sprintf(
				"etcd holds %d of %d bytes and takes no writes; %s", s.DbSizeInUse, s.DbSizeQuota, c.cure())}}
		case s.DbSizeQuota > 0 && s.DbSizeInUse > s.DbSizeQuota/10*8:
			problems = []config.Problem{{Code: codeStorageTight, Message: fmt.Sprintf(
				"etcd holds more than 80 %% of its %d bytes; %s", s.DbSizeQuota, c.cure())}}
		}
	}
	return problems
}

func (c *Config) cure() string {
	if c.store.server != nil {
		return "give it a larger quota, or keep a shorter history"
	}
	return "compact and defragment it, and disarm its alarm (etcdctl alarm disarm), or give it a larger quota"
}

func (c *Config) endpoints() []string {
	if c.store.server != nil {
		return []string{""}
	}
	return c.client.Endpoints()
}

// makeRoom frees what etcd keeps of overwritten and deleted values, and disarms
// the alarm if a twentieth of the quota is free then. It tells whether the
// store is still full.
func (c *Config) makeRoom(ctx context.Context, endpoint string) (full bool, err error) {
	now, err := c.client.Get(ctx, headKey, clientv3.WithCountOnly())
	if err != nil {
		return true, err
	}
	if now.Header.Revision != c.roomMade.Load() {
		// Compacting twice at one revision is an error.
		if _, err := c.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return true, err
		}
		c.roomMade.Store(now.Header.Revision)
		if err := c.store.server.Server.Backend().Defrag(); err != nil {
			return true, err
		}
	}
	s, err := c.client.Status(ctx, endpoint)
	if err != nil || s.DbSize > s.DbSizeQuota/20*19 {
		return true, err
	}
	_, err = c.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: s.Header.MemberId, Alarm: etcdserverpb.AlarmType_NOSPACE})
	if err == nil {
		c.o.Logger.Info("the store has room again", "bytes", s.DbSize, "quota", s.DbSizeQuota)
	}
	return err != nil, err
}

// compactedFor is how much of its own past etcd keeps: enough for a watch that
// is cut for a moment. The history of the configuration does not depend on it.
const compactedFor = 5 * time.Minute
