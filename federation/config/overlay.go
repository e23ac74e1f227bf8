package config

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/btree"
)

const (
	codeHidden     = "HIDDEN_BY"       // a source of higher precedence has the object too
	codeUnexpected = "KIND_UNEXPECTED" // a source gave what it said it does not know
)

// overlay is what all sources hold, the first in precedence first. It is an
// immutable value; a change costs what changed.
type overlay struct {
	sources []layer
}

type layer struct {
	name    string
	kinds   []federation.Kind
	objects btree.Map[*Object]
}

func newOverlay(sources []Named) overlay {
	var o overlay
	for _, s := range sources {
		o.sources = append(o.sources, layer{name: s.Name, kinds: s.Source.Kinds()})
	}
	return o
}

// holders are the sources that have an object of that key, the one that counts first;
// none is asked for a kind that it does not know (seed 32). Before an object for one cluster,
// one for all proxies counts.
func (o overlay) holders(key federation.ObjectKey) []int {
	var found []int
	if key.Cluster != "" {
		found = o.holders(key.Everywhere())
	}
	for i, l := range o.sources {
		if !l.knows(key.Of()) {
			continue
		}
		if _, has := l.objects.Get(objectSortKey(key)); has {
			found = append(found, i)
		}
	}
	return found
}

func (l layer) knows(kind federation.Kind) bool { return slices.Contains(l.kinds, kind) }

// first is the object that counts (seed 30); nil also where one for all proxies does.
func (o overlay) first(key federation.ObjectKey) *Object {
	if key.Cluster != "" && o.first(key.Everywhere()) != nil {
		return nil
	}
	for _, l := range o.sources {
		if !l.knows(key.Of()) {
			continue
		}
		if object, has := l.objects.Get(objectSortKey(key)); has {
			return object
		}
	}
	return nil
}

// take makes the update part of what the source holds. It returns the affected
// keys, sorted, and what the source should not have given.
func (o overlay) take(source int, u Update) (after overlay, keys []federation.ObjectKey, refused []Problem) {
	l := o.sources[source]
	touched := map[federation.ObjectKey]bool{}
	txn := l.objects.Txn()
	if u.Full {
		l.objects.Walk(func(_ string, old *Object) bool { touched[old.Key] = true; return false })
		txn = btree.Map[*Object]{}.Txn()
	}
	for _, e := range u.Events {
		switch {
		case e.New != nil && !l.knows(e.New.Key.Of()):
			refused = append(refused, Problem{
				Code: codeUnexpected, Object: e.New.Key.String(),
				Message: fmt.Sprintf("the source %s does not say that it gives this kind; the object is not used", l.name),
			})
		case e.New != nil:
			touched[e.New.Key] = true
			txn.Set(objectSortKey(e.New.Key), e.New)
		case e.Old != nil:
			touched[e.Old.Key] = true
			txn.Delete(objectSortKey(e.Old.Key))
		}
	}
	after = overlay{sources: slices.Clone(o.sources)}
	after.sources[source].objects = txn.Commit()
	keys = slices.Collect(maps.Keys(touched))
	for _, key := range keys {
		after.touchOfClusters(key, touched)
	}
	keys = slices.Collect(maps.Keys(touched))
	slices.SortFunc(keys, federation.ObjectKey.Compare)
	return after, keys, refused
}

// touchOfClusters adds the objects which are for the proxies of one cluster and have the name of one
// for all proxies: whether they count depends on that.
func (o overlay) touchOfClusters(everywhere federation.ObjectKey, touched map[federation.ObjectKey]bool) {
	if everywhere.Cluster != "" {
		return
	}
	for _, l := range o.sources {
		l.objects.WalkPrefix(clusterObjectsPrefix(everywhere), func(_ string, found *Object) bool { touched[found.Key] = true; return false })
	}
}

// events are the changes of what counts between two overlays, in the order of
// keys; an object that stayed the same is none.
func (o overlay) events(before overlay, keys []federation.ObjectKey) []Event {
	var events []Event
	for _, key := range keys {
		old, now := before.first(key), o.first(key)
		if !sameObject(old, now) {
			events = append(events, Event{Old: old, New: now})
		}
	}
	return events
}

func sameObject(a, b *Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Revision == b.Revision && a.Expires.Equal(b.Expires) && a.Alike(b)
}

// hidden is the problem of objects that do not count, if there are any.
func (o overlay) hidden(key federation.ObjectKey) *Problem {
	holders := o.holders(key)
	if len(holders) < 2 {
		return nil
	}
	if key.Cluster != "" && o.first(key.Everywhere()) != nil {
		return &Problem{
			Code: codeHidden, Object: title(key),
			Message: fmt.Sprintf("the object for the proxies of cluster %s is hidden by the one of %s for all proxies; remove one of them",
				key.Cluster, o.sources[holders[0]].name),
		}
	}
	return o.hiding(key, holders[0], holders[1:])
}

// hiding is the problem of the objects of the losers, which are hidden by the winner's.
func (o overlay) hiding(key federation.ObjectKey, winner int, losers []int) *Problem {
	var names string
	for _, i := range losers {
		names += separator(names) + o.sources[i].name
	}
	return &Problem{
		Code: codeHidden, Object: title(key),
		Message: fmt.Sprintf("the object of %s is hidden by the one of %s; remove one of them", names, o.sources[winner].name),
	}
}

func separator(before string) string {
	if before == "" {
		return ""
	}
	return ", "
}
