package crd

import (
	"cmp"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// cluster is what is known of an attached cluster that is read.
type cluster struct {
	id         federation.ClusterID
	precedence int
	identity   string
	status     federation.RegistryStatus
	want       *selection
	tables     map[place]*table
	unlooked   *config.Problem                    // why it is not known which kinds are served
	kinds      map[federation.Kind]config.Problem // kinds that cannot be read
	ignored    []config.Problem                   // about objects of kinds that the hub does not take
	failed     map[place]config.Problem           // why they cannot be read
	unwritten  []config.Problem                   // why their status is not written
	looked     bool
	pending    map[place]bool // neither read nor refused so far
	// complete: everything was read or refused once. Before, nothing of the cluster counts:
	// a part of its configuration may mean something else than all of it.
	complete bool
	restored bool      // what was read of it before the start was looked for
	saved    time.Time // what there is was read before then; zero: since the start
	unsaved  unsaved
}

func newCluster(id federation.ClusterID) *cluster {
	return &cluster{
		id: id, tables: map[place]*table{}, kinds: map[federation.Kind]config.Problem{},
		failed: map[place]config.Problem{}, pending: map[place]bool{},
	}
}

// observe notes how the cluster is shown. It reports whether the cluster itself
// changed, and whether its status did.
func (c *cluster) observe(of *federation.Cluster) (changed, spoke bool) {
	status, precedence := federation.RegistryStatus{Phase: of.Status.Phase, Message: of.Status.Message},
		cmp.Or(of.Spec.Precedence, federation.DefaultPrecedence)
	changed, spoke = c.precedence != precedence || c.identity != of.Identity.UID, c.status != status
	c.precedence, c.identity, c.status = precedence, of.Identity.UID, status
	return changed, spoke
}

// inTrouble reports whether the cluster cannot be read, or is not trusted.
func (c *cluster) inTrouble() bool {
	return c.status.Phase == federation.Stale || c.status.Phase == federation.Failed || c.status.Phase == federation.Held
}

// scope is for whose proxies alone its objects of the kind are; empty: for all proxies.
// Those that are about their cluster stay its own.
func (c *cluster) scope(of federation.Kind) federation.ClusterID {
	switch {
	case federation.IsOfCluster(of):
		return c.id
	case c.want == nil:
		return ""
	}
	return c.want.scope
}

// keyOf is the key under which an object of the cluster is configuration.
func (c *cluster) keyOf(kind federation.Kind, at listwatch.Key) federation.ObjectKey {
	key := keyOf(kind, at)
	key.Cluster = c.scope(kind)
	return key
}

// narrow drops what is not wanted any more, and returns the keys of it. What is wanted in
// another place, such as one namespace instead of all, moves there and stays.
func (c *cluster) narrow() (keys []federation.ObjectKey) {
	places := c.want.places()
	for p := range places {
		if c.tables[p] != nil {
			continue
		}
		next := newTable()
		for from, t := range c.tables {
			if from.kind == p.kind {
				next.adopt(t, p.namespace)
			}
		}
		if len(next.items) > 0 {
			c.tables[p] = next
		}
	}
	for p, t := range c.tables {
		if _, wanted := places[p]; !wanted {
			keys = append(keys, c.keysOf(p.kind, t)...)
			delete(c.tables, p)
		}
	}
	for p := range c.failed {
		if _, wanted := places[p]; !wanted {
			delete(c.failed, p)
		}
	}
	return keys
}

func (c *cluster) keys() (all []federation.ObjectKey) {
	for p, t := range c.tables {
		all = append(all, c.keysOf(p.kind, t)...)
	}
	return all
}

func (c *cluster) keysOf(kind federation.Kind, t *table) (all []federation.ObjectKey) {
	for at := range t.items {
		all = append(all, c.keyOf(kind, at))
	}
	return all
}

// table returns that of the place, which it makes if there is none.
func (c *cluster) table(p place) *table {
	if c.tables[p] == nil {
		c.tables[p] = newTable()
	}
	return c.tables[p]
}

// object is what the cluster has under the key, or nil. Its own key names no cluster.
func (c *cluster) object(key federation.ObjectKey) *config.Object {
	if key.Cluster != c.scope(key.Of()) {
		return nil
	}
	at := listwatch.Key{Namespace: key.Namespace, Name: key.Name}
	for _, namespace := range []string{key.Namespace, ""} {
		if t := c.tables[place{key.Of(), namespace}]; t != nil && t.items[at] != nil && t.items[at].object != nil {
			return t.items[at].object
		}
	}
	return nil
}

// table is what was read of one place.
type table struct {
	turn  uint64 // of the reader that listed it last
	items map[listwatch.Key]*item
	bad   map[listwatch.Key]*item // of these, those that are not valid, or have fields that are not known
	used  federation.Usage
}

func newTable() *table {
	return &table{items: map[listwatch.Key]*item{}, bad: map[listwatch.Key]*item{}}
}

// adopt takes what another table has of the namespace.
func (t *table) adopt(from *table, namespace string) {
	for key, i := range from.items {
		if namespace == "" || key.Namespace == namespace {
			t.set(i)
		}
	}
}

// set adds or replaces an object. The last valid form of one that is not valid stays.
func (t *table) set(i *item) {
	if old := t.items[i.at]; len(i.problems) > 0 && i.object == nil && old != nil && old.object != nil {
		kept := *i
		kept.object = old.object
		i = &kept
	}
	t.remove(i.at)
	t.items[i.at] = i
	if i.isFaulty() {
		t.bad[i.at] = i
	}
	t.used = t.used.Add(federation.Usage{Objects: 1, Bytes: i.size()})
}

func (t *table) remove(at listwatch.Key) {
	if old := t.items[at]; old != nil {
		t.used = t.used.Add(federation.Usage{Objects: -1, Bytes: -old.size()})
		delete(t.items, at)
		delete(t.bad, at)
	}
}

// fewest is from how many objects on a list that lacks more than half of them is read a
// second time before it counts (F44).
const fewest = 20

// lacks reports whether most of what was read before is missing.
func (t *table) lacks(items []*item) bool {
	if len(t.items) < fewest {
		return false
	}
	still := 0
	for _, i := range items {
		if t.items[i.at] != nil {
			still++
		}
	}
	return 2*still < len(t.items)
}

// effective is the object of the key that counts, and the problem that it hides others.
// The caller holds mu.
func (s *Source) effective(key federation.ObjectKey) (object *config.Object, hidden *config.Problem) {
	var counts, losers string
	for _, c := range s.order {
		o := c.object(key)
		switch {
		case o == nil || !c.complete:
		case object == nil:
			object, counts = o, string(c.id)
		case losers == "":
			losers = string(c.id)
		default:
			losers += ", " + string(c.id)
		}
	}
	if losers == "" {
		return object, nil
	}
	return object, &config.Problem{
		Code: codeHidden, Object: key.Title(),
		Message: fmt.Sprintf("the object of cluster %s is hidden by the one of cluster %s; remove one of them", losers, counts),
	}
}
