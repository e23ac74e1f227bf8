package etcd

import (
	"context"
	"expvar"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// openings counts the stores that this process began to open.
var openings atomic.Int64

// elect makes the only member its own leader, until the context ends. Left alone, it
// waits for one to five ticks, in case there is another leader (ADR 0082).
func elect(ctx context.Context, member *etcdserver.EtcdServer, opening int64) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	self := uint64(member.MemberID())
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		if member.Lead() == self || !caughtUp(opening) {
			continue
		}
		// What is refused is tried again, and in the end by etcd itself.
		_ = member.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &self, To: &self})
	}
}

// caughtUp reports whether Raft knows that all that was agreed on before is applied. An
// election before that reads what is not applied, and ends the store if etcd has
// applied and dropped it meanwhile: that etcd has applied it is not enough.
//
// etcd publishes the state of Raft only for the process, that of the store that was
// opened last. While several are being opened, the earlier ones wait for their ticks.
func caughtUp(opening int64) bool {
	published, is := expvar.Get("raft.status").(expvar.Func)
	if !is {
		return false
	}
	status, is := published.Value().(raft.Status)
	return is && openings.Load() == opening && status.GetCommit() > 0 && status.Applied >= status.GetCommit()
}
