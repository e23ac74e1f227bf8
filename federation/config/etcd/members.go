package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"isthmus.dev/isthmus/federation/config"
)

// member is one etcd server, and how it is.
type member struct {
	endpoint string // empty: the embedded one
	conn     *grpc.ClientConn
	status   *clientv3.StatusResponse // its last answer; nil: none to the last question
	err      error
	took     time.Duration // until its answer came
	missed   int           // questions without an answer, one after the other
	since    time.Time     // when the first of them was asked
}

// health is how the members of etcd are, and whether the store takes writes.
type health struct {
	store     *Store
	client    *clientv3.Client
	o         *ConfigOptions
	step      *steps
	quiet     quiet
	roundTrip atomic.Int64 // to the member that answered last of all when they were last asked, in ns
	roomMade  atomic.Int64 // etcd's revision when room was last made
	refused   atomic.Value // the limit for which the disk refused changes when it was last logged
}

// missedWhenDown is how many questions a member leaves unanswered before it is
// called down: a machine may stop for a moment.
const missedWhenDown = 2

func (m *member) down() bool { return m.missed >= missedWhenDown }

// watchMembers asks every member how it is and says what it finds, until the
// context ends. It runs beside the watcher: a member that does not answer holds
// nobody up.
func (f *watcher) watchMembers(ctx context.Context) {
	members, err := f.c.health.members()
	if err != nil {
		f.c.o.Logger.Warn("the members of etcd cannot be watched", "err", err)
		return
	}
	defer closeAll(members)
	tick := time.NewTicker(f.c.o.Probe)
	defer tick.Stop()
	for {
		f.c.health.ask(ctx, members)
		if ctx.Err() != nil {
			return
		}
		f.found(byMember, membersDown(members))
		f.found(byStorage, f.c.health.storage(ctx, members))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// members are the servers with a connection of their own each, so that a question
// reaches the one that is asked.
func (h *health) members() ([]*member, error) {
	if h.store.server != nil {
		return []*member{{}}, nil
	}
	var all []*member
	for _, endpoint := range h.client.Endpoints() {
		conn, err := h.client.Dial(endpoint)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, &member{endpoint: endpoint, conn: conn})
	}
	return all, nil
}

func closeAll(members []*member) {
	for _, m := range members {
		if m.conn != nil {
			_ = m.conn.Close() // it fails only for one that is closed
		}
	}
}

// ask asks all members at the same time.
func (h *health) ask(ctx context.Context, members []*member) {
	limited, cancel := context.WithTimeout(ctx, min(h.o.Patience, 2*tryFor))
	defer cancel()
	var asking sync.WaitGroup
	for _, m := range members {
		asking.Go(func() {
			began := time.Now()
			m.status, m.err = h.statusOf(limited, m)
			m.took = time.Since(began)
			if m.err != nil && m.conn != nil && ctx.Err() == nil { // not because the hub stops
				// What was on its way when the member stopped says nothing about it.
				h.store.tries.hangUp(hostOf(m.endpoint), began.Add(m.took/2))
			}
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		return
	}
	for _, m := range members {
		h.noteMember(m)
	}
	h.noteMembers(members)
}

// noteMembers notes the indexes of the members, or that none answers.
func (h *health) noteMembers(members []*member) {
	farthest := time.Duration(0)
	for _, m := range members {
		if m.err == nil {
			farthest = max(farthest, m.took)
		}
	}
	if farthest > 0 {
		h.roundTrip.Store(int64(farthest))
	}
	if slices.ContainsFunc(members, func(m *member) bool { return m.err == nil }) {
		h.quiet.end()
	} else {
		h.quiet.begin(h.o.Now().Add(quietFor))
	}
}

func (h *health) statusOf(ctx context.Context, m *member) (*clientv3.StatusResponse, error) {
	if m.conn == nil {
		return h.client.Status(ctx, "")
	}
	answer, err := etcdserverpb.NewMaintenanceClient(m.conn).Status(ctx, &etcdserverpb.StatusRequest{}, grpc.WaitForReady(true))
	return (*clientv3.StatusResponse)(answer), err
}

func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Host
}

// noteMember notes, and logs, that a member began or ceased to answer.
func (h *health) noteMember(m *member) {
	if m.err == nil {
		if m.down() {
			h.o.Logger.Info("an etcd member answers again", "member", m.endpoint, "duration", h.o.Now().Sub(m.since).Round(time.Second))
		}
		m.missed = 0
		return
	}
	if m.missed == 0 {
		m.since = h.o.Now()
	}
	m.missed++
	if m.missed == missedWhenDown && !errors.Is(m.err, errEnded) { // Run logs the end
		h.o.Logger.Warn("an etcd member does not answer", "member", m.endpoint, "err", m.err)
	}
}

// membersDown names the members that do not answer. When none does, the whole
// store is unreachable, and that is reported elsewhere.
func membersDown(members []*member) []config.Problem {
	if !slices.ContainsFunc(members, func(m *member) bool { return m.err == nil }) {
		return nil
	}
	var problems []config.Problem
	for _, m := range members {
		if m.down() {
			problems = append(problems, config.Problem{Code: codeMemberDown, Object: m.endpoint, Message: fmt.Sprintf(
				"the etcd member %s has not answered since %s; the hub uses the other members: start it again, or replace it and change etcd.endpoints",
				m.endpoint, m.since.UTC().Format(time.RFC3339))})
		}
	}
	return problems
}

// logRefusal logs that the disk began or ceased to refuse changes. The end of the store
// itself is logged by Run.
func (h *health) logRefusal(r *config.Refused) {
	now := ""
	if r != nil {
		now = r.Limit
	}
	was, _ := h.refused.Swap(now).(string)
	switch {
	case now == was:
	case now == limitFull:
		h.o.Logger.Warn("changes are refused: the disk of the store is full", "reason", r.Message)
	case now == limitNotWritable && h.store.inside.ended() == nil:
		h.o.Logger.Error("changes are refused: the disk of the store is read-only", "reason", r.Message)
	case now == "":
		h.o.Logger.Info("the store's disk is writable again")
	}
}

// storage says when the store takes no writes, or soon will not. An embedded
// store that is full is compacted and defragmented here, and takes writes again
// when that made room: no other hub can do it, and none uses it.
func (h *health) storage(ctx context.Context, members []*member) []config.Problem {
	ctx, cancel := context.WithTimeout(ctx, h.o.Patience)
	defer cancel()
	refused := h.store.Refusal()
	h.logRefusal(refused)
	if refused != nil {
		return []config.Problem{{Code: codeOfLimit[refused.Limit], Message: refused.Message}}
	}
	var problems []config.Problem
	for _, m := range members {
		s := m.status
		if m.err != nil {
			continue
		}
		full := slices.ContainsFunc(s.Errors, func(e string) bool { return strings.Contains(e, etcdserverpb.AlarmType_NOSPACE.String()) })
		if full && h.store.server != nil {
			var err error
			full, err = h.makeRoom(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				h.o.Logger.Warn("store compaction failed", "err", err)
			}
		}
		switch {
		case full:
			return []config.Problem{{Code: codeStorageFull, Message: fmt.Sprintf(
				"etcd holds %d of %d bytes and takes no writes; %s", s.DbSizeInUse, s.DbSizeQuota, h.cure())}}
		case s.DbSizeQuota > 0 && s.DbSizeInUse > s.DbSizeQuota/10*8:
			problems = []config.Problem{{Code: codeStorageTight, Message: fmt.Sprintf(
				"etcd holds more than 80 %% of its %d bytes; %s", s.DbSizeQuota, h.cure())}}
		}
	}
	return problems
}
