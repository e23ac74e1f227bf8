package graph

import (
	"bytes"
	"container/list"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

const (
	// changesList names the cursors of changes among others.
	changesList = "changes"
	// What is kept for subscribers that come back is bounded by count, by the bytes
	// that its snapshots do not share with each other, and by the time since its last
	// use. A client that comes back later gets everything again.
	mostSubscriptions     = 1024
	mostSubscriptionBytes = 64 << 20
	subscriptionLife      = 5 * time.Minute
)

// subscriptionCache has what subscribers have seen last, by their cursors. It is safe for
// concurrent use.
type subscriptionCache struct {
	process [8]byte // of the cursors of this process
	mu      sync.Mutex
	byUse   *list.List // of kept, the latest first
	found   map[string]*list.Element
	bytes   int         // of all that is kept
	expiry  *time.Timer // runs while something is kept
}

type kept struct {
	cursor string
	subscriptionState
	used time.Time
}

func newSubscriptionCache() *subscriptionCache {
	p := &subscriptionCache{byUse: list.New(), found: map[string]*list.Element{}}
	_, _ = rand.Read(p.process[:]) // Never fails.
	return p
}

// cursor names a state: exactly, for this process, and by its content, for
// every other.
func (p *subscriptionCache) cursor(of subscriptionState, epoch string) string {
	key := append([]byte(nil), p.process[:]...)
	key = binary.BigEndian.AppendUint64(key, of.snapshot.Version())
	key = binary.BigEndian.AppendUint64(key, of.statusAt)
	return model.Cursor(changesList, string(append(key, of.content(epoch, of.digest)...)))
}

// hasContent reports whether the cursor is that of a state of this content.
func hasContent(cursor string, content []byte) bool {
	key, ok := model.CursorKey(changesList, cursor)
	const own = 24
	return ok && len(key) > own && bytes.Equal([]byte(key)[own:], content)
}

// keep remembers the state under the cursor, for as long as not too many others
// are used. A state of a later snapshot may take the place of one, where
// nothing that is followed changed.
func (p *subscriptionCache) keep(cursor string, of subscriptionState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, known := p.found[cursor]; known {
		p.drop(e)
	}
	p.found[cursor] = p.byUse.PushFront(kept{cursor, of, time.Now()})
	p.bytes += of.bytes
	p.prune()
}

// get returns the state of a subscriber that follows the same things.
func (p *subscriptionCache) get(cursor string, f following) (subscriptionState, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	e, ok := p.found[cursor]
	if !ok || e.Value.(kept).following != f {
		return subscriptionState{}, false
	}
	k := e.Value.(kept)
	k.used = time.Now()
	e.Value = k
	p.byUse.MoveToFront(e)
	return k.subscriptionState, true
}

// prune drops what is too much or too old, and comes back for the rest. The
// caller holds mu.
func (p *subscriptionCache) prune() {
	for oldest := p.byUse.Back(); oldest != nil; oldest = p.byUse.Back() {
		tooMany := p.byUse.Len() > mostSubscriptions || p.bytes > mostSubscriptionBytes && p.byUse.Len() > 1
		if !tooMany && time.Since(oldest.Value.(kept).used) < subscriptionLife {
			break
		}
		p.drop(oldest)
	}
	if p.expiry != nil {
		p.expiry.Stop()
		p.expiry = nil
	}
	if oldest := p.byUse.Back(); oldest != nil {
		p.expiry = time.AfterFunc(subscriptionLife-time.Since(oldest.Value.(kept).used), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.prune()
		})
	}
}

func (p *subscriptionCache) drop(e *list.Element) {
	k := p.byUse.Remove(e).(kept)
	delete(p.found, k.cursor)
	p.bytes -= k.bytes
}

// bytesOf estimates what a snapshot holds alone when these changes lead away from
// it: the values that they replaced.
func bytesOf(set federation.ChangeSet, replaced *federation.Snapshot) int {
	const perThing, perEndpoint = 1 << 10, 300
	n := perThing * (len(set.Services) + len(set.Clusters) + len(set.Networks) + len(set.Objects))
	for _, c := range set.Services {
		if svc, ok := replaced.Service(c.Key); ok {
			n += perEndpoint * svc.CountEndpoints()
		}
	}
	return n
}
