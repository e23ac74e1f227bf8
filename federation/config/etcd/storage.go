package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (h *health) cure() string {
	if h.store.server != nil {
		return "raise its quota (etcd.quotaBytes or --etcd-quota-bytes) and restart isthmus"
	}
	return "compact and defragment it, and disarm its alarm (etcdctl alarm disarm), or give it a larger quota"
}

// makeRoom frees what etcd keeps of overwritten and deleted values, and disarms
// the alarm if a twentieth of the quota is free then. It reports whether the
// store is still full.
func (h *health) makeRoom(ctx context.Context) (full bool, err error) {
	now, err := h.client.Get(ctx, headKey, clientv3.WithCountOnly())
	if err != nil {
		return true, err
	}
	if now.Header.Revision != h.roomMade.Load() {
		// Compacting twice at one revision is an error.
		if _, err := h.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil &&
			!errors.Is(err, rpctypes.ErrCompacted) {
			return true, err
		}
		h.roomMade.Store(now.Header.Revision)
		defrag := func(context.Context) error { return h.store.server.Server.Backend().Defrag() }
		if err := h.store.inside.ask(ctx, defrag); err != nil {
			return true, err
		}
	}
	s, err := h.client.Status(ctx, "")
	if err != nil || s.DbSize > s.DbSizeQuota/20*19 {
		return true, err
	}
	_, err = h.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: s.Header.MemberId, Alarm: etcdserverpb.AlarmType_NOSPACE})
	if err == nil {
		h.o.Logger.Info("the store has room again", "bytes", s.DbSize, "quota", s.DbSizeQuota)
	}
	return err != nil, err
}

// compactedFor is how much of its own past etcd keeps: enough for a watch that
// is cut for a moment. The history of the configuration does not depend on it.
const compactedFor = 5 * time.Minute
