package etcd

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"isthmus.dev/isthmus/internal/btree"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// leasedListed takes the list of everything that is leased, and gives the first
// Update if none was given.
func (f *watcher) leasedListed(kvs []*mvccpb.KeyValue) {
	listed := map[string]bool{}
	for _, kv := range kvs {
		listed[string(kv.Key)] = true
	}
	gone := func(key string, _ int64) bool { return !listed[key] }
	bad := func(key string, _ config.Problem) bool { return !listed[key] }
	tree := f.shown.leased.Txn()
	var keys []federation.ObjectKey
	for key := range f.leases {
		if k, err := readLeasedKey(key); err == nil && !listed[key] {
			tree.Delete(treeKey(k))
			keys = append(keys, k)
		}
	}
	maps.DeleteFunc(f.leases, gone)
	maps.DeleteFunc(f.badLeases, bad)
	for _, kv := range kvs {
		keys = append(keys, f.takeLeased(&tree, kv)...)
	}
	f.showLeased(view{f.shown.state, tree.Commit()}, keys)
	f.findLeased()
}

// leasedEvery is the least time between two steps of leased objects: every stream looks at each, and many proxies may
// register or report at the same time.
const leasedEvery = 100 * time.Millisecond

// burst is what the watch of leases said since the last step. One event after a quiet time is not held up.
type burst struct {
	events []*clientv3.Event
	timer  *time.Timer // until the next step; nil: there are no events
	last   time.Time   // of the last step
}

// due has a value when a step is due.
func (b *burst) due() <-chan time.Time {
	if b.timer == nil {
		return nil
	}
	return b.timer.C
}

func (b *burst) add(events []*clientv3.Event) {
	b.events = append(b.events, events...)
	if b.timer == nil {
		b.timer = time.NewTimer(max(leasedEvery-time.Since(b.last), 0))
	}
}

func (b *burst) take() []*clientv3.Event {
	events := b.events
	if b.timer != nil {
		b.timer.Stop()
	}
	*b = burst{last: time.Now()}
	return events
}

// showMoved gives what the watch of leases said since the last step. The caller says then what is wrong with it.
func (f *watcher) showMoved() {
	if f.moved.timer == nil {
		return
	}
	tree := f.shown.leased.Txn()
	var keys []federation.ObjectKey
	for _, e := range f.moved.take() {
		if e.Type == clientv3.EventTypePut {
			keys = append(keys, f.takeLeased(&tree, e.Kv)...)
			continue
		}
		key := string(e.Kv.Key)
		delete(f.leases, key)
		delete(f.badLeases, key)
		if k, err := readLeasedKey(key); err == nil {
			tree.Delete(treeKey(k))
			keys = append(keys, k)
		}
	}
	f.showLeased(view{f.shown.state, tree.Commit()}, keys)
}

func (f *watcher) showLeased(next view, keys []federation.ObjectKey) {
	if f.first {
		slices.SortFunc(keys, federation.ObjectKey.Compare)
		f.publish(next, slices.Compact(keys))
	} else {
		f.first, f.shown = true, next
		f.to.Update(config.Update{Revision: next.revision, Full: true, Events: next.all()})
	}
}

func (f *watcher) findLeased() {
	f.found(byLeased, f.leasedProblems())
	f.found(byShadow, shadowed(f.shown))
}

// takeLeased puts a leased object into the tree, or notes why not, and returns
// its key if anything changed.
func (f *watcher) takeLeased(tree *btree.Txn[*config.Object], kv *mvccpb.KeyValue) []federation.ObjectKey {
	key := string(kv.Key)
	if f.leases[key] == kv.ModRevision {
		return nil
	}
	k, err := readLeasedKey(key)
	if err != nil {
		f.badLeases[key] = config.Problem{
			Code: codeUnknownKey, Object: clipped(key),
			Message: "isthmus writes no such key and ignores it; remove it",
		}
		return nil
	}
	o, err := f.c.readLeased(k, kv)
	if err != nil {
		f.badLeases[key] = config.Problem{
			Code: codeOf(err), Object: k.String(),
			Message: "its registration is not used: " + err.Error() + "; register it again",
		}
		return nil
	}
	delete(f.badLeases, key)
	f.leases[key] = kv.ModRevision
	tree.Set(treeKey(k), o)
	return []federation.ObjectKey{k}
}

func (c *Config) readLeased(k federation.ObjectKey, kv *mvccpb.KeyValue) (*config.Object, error) {
	var v leasedValue
	if err := unseal(kv.Value, &v); err != nil {
		return nil, err
	}
	if v.Key != k {
		return nil, fmt.Errorf("its value is of %s", v.Key)
	}
	if kv.Lease == 0 {
		return nil, fmt.Errorf("it has no lease and would stay for ever")
	}
	o := &config.Object{Key: k, APIVersion: v.APIVersion, Revision: v.Revision, Manifest: v.Manifest, Expires: v.Expires}
	if now := c.o.Now(); o.Expires.Before(now) { // it was renewed
		o.Expires = now.Add(time.Duration(v.Seconds) * time.Second)
	}
	return o, o.CheckName()
}

func (f *watcher) leasedProblems() []config.Problem {
	var problems []config.Problem
	for _, key := range slices.Sorted(maps.Keys(f.badLeases)) {
		problems = append(problems, f.badLeases[key])
	}
	return problems
}

// shadowed are the leased objects whose key a committed one has.
func shadowed(v view) []config.Problem {
	var problems []config.Problem
	v.leased.Walk(func(_ string, o *config.Object) bool {
		if v.get(o.Key) != nil {
			problems = append(problems, config.Problem{
				Code: codeShadowed, Object: o.Key.String(),
				Message: "the configuration has an object of this name, which takes precedence; register under another name",
			})
		}
		return false
	})
	return problems
}

// clipped shows a key that may be anything.
func clipped(key string) string { return fmt.Sprintf("%.200q", key) }
