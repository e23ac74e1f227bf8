// Package gatewayapi is a source of configuration: what the Gateways and routes of the
// Gateway API mean, as Gateways and VirtualServices of Istio (ADR 129). It reads the objects
// that other sources give. What they mean is a function of a snapshot.
package gatewayapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/internal/text"
)

// Options say what the source reads.
type Options struct {
	Snapshots interface{ Latest() *federation.Snapshot }
	Patience  time.Duration // how long the first Update waits for the services of clusters; 0: 10 s
	Logger    *slog.Logger
}

// Source is a config.Source. It needs Views before it runs.
type Source struct {
	o     Options
	views interface{ Latest() *config.View }
	kept  statuses

	// Of Run alone.
	revision int64
	said     []config.Problem
}

// New makes a source.
func New(o Options) *Source {
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler)).With(slog.String("source", "GATEWAY_API"))
	return &Source{o: o}
}

// Views names the configuration that the source is part of: its other sources come first.
func (s *Source) Views(views interface{ Latest() *config.View }) { s.views = views }

// Kinds is part of config.Source.
func (*Source) Kinds() []federation.Kind {
	return []federation.Kind{kind.Gateway, virtualServices, federation.BackendTLSKind, federation.ClientCertificateKind}
}

// Run is part of config.Source. It runs once at a time. The first Update waits for the
// sources of the objects, and, where there are any, for the services of clusters that
// are being read: a backend that is not known yet would be reported and refused.
func (s *Source) Run(ctx context.Context, to config.Sink) error {
	b, first, waited := newTranslations(&s.kept), true, false
	s.said = nil
	patience := time.NewTimer(s.o.Patience)
	defer patience.Stop()
	for {
		view, snapshot := s.views.Latest(), s.o.Snapshots.Latest()
		if !first || given(view) && (waited || !hasUnits(snapshot) || allListed(snapshot)) {
			events := b.take(snapshot)
			if first {
				events = b.everything()
			}
			if first || len(events) > 0 {
				s.revision++
				for _, e := range events {
					if e.New != nil {
						e.New.Revision = s.revision
					}
				}
				to.Update(config.Update{Revision: s.revision, Full: first, Events: events})
			}
			first = false
			s.complain(b, to)
		}
		select {
		case <-view.Superseded():
		case <-snapshot.Superseded():
		case <-patience.C:
			waited = true
		case <-ctx.Done():
			return nil
		}
	}
}

// given reports whether every other source gave the objects that it has.
func given(view *config.View) bool {
	return view.SyncedFor(gatewayKind)
}

func hasUnits(snapshot *federation.Snapshot) bool {
	return slices.ContainsFunc(unitKinds, func(of federation.Kind) bool {
		for range snapshot.Objects().Of(of) {
			return of != classKind // a class alone needs nothing of clusters
		}
		return false
	})
}

// allListed reports whether the services of every cluster are known that can be.
func allListed(snapshot *federation.Snapshot) bool {
	for c := range snapshot.Clusters() {
		if !c.Listed && (c.Status.Phase == federation.Pending || c.Status.Phase == federation.Syncing) {
			return false
		}
	}
	return true
}

// complain tells what is wrong, once.
func (s *Source) complain(b *translations, to config.Sink) {
	if !b.worse && s.said != nil {
		return
	}
	b.worse = false
	all := config.Shown(b.wrong(), "objects of the Gateway API")
	if s.said != nil && slices.Equal(s.said, all) {
		return
	}
	before := map[config.Problem]bool{}
	for _, p := range s.said {
		before[p] = true
	}
	for _, p := range all {
		if !before[p] {
			s.o.Logger.Warn("object of the Gateway API", slog.String("code", p.Code), slog.String("object", p.Object), slog.String("field", p.Field),
				slog.String("problem", p.Message))
		}
	}
	s.said = append([]config.Problem{}, all...)
	to.Trouble(slices.Clone(s.said))
}

// translations has what Gateways and routes were translated to, and what that was computed from.
type translations struct {
	at    uint64 // version of the snapshot up to which changes were looked at
	index *derive.Index[federation.ObjectKey]
	units map[federation.ObjectKey]unit
	worse bool // the problems may be others
	// having counts the Gateways of each cluster that have routes for a host.
	having map[string]map[federation.ClusterID]int
	shared map[string]struct{} // hosts of several clusters
	kept   *statuses           // nil: nobody reads the statuses
}

// unit is what one Gateway or route was translated to.
type unit struct {
	made
	problems []config.Problem
	read     federation.Deps
}

func newTranslations(kept *statuses) *translations {
	return &translations{
		kept: kept, index: derive.NewIndex[federation.ObjectKey](), units: map[federation.ObjectKey]unit{},
		having: map[string]map[federation.ClusterID]int{}, shared: map[string]struct{}{},
	}
}

// unitKinds are the kinds of objects that are translated or have a status.
var unitKinds = append(translators.Kinds(), Routes()...)

// dirty are the objects that are to be translated again.
func (b *translations) dirty(changes federation.ChangeSet, s *federation.Snapshot) []federation.ObjectKey {
	dirty := b.index.Affected(changes, s)
	if changes.All {
		dirty = slices.Collect(maps.Keys(b.units))
		for _, of := range unitKinds {
			for o := range s.Objects().Of(of) {
				dirty = append(dirty, o.Key)
			}
		}
	}
	for _, c := range changes.Objects {
		if slices.Contains(unitKinds, c.Key.Of()) {
			dirty = append(dirty, c.Key)
		}
	}
	slices.SortFunc(dirty, federation.ObjectKey.Compare)
	return slices.Compact(dirty)
}

// take brings the translations up to the snapshot, and returns what that changes.
func (b *translations) take(s *federation.Snapshot) []config.Event {
	dirty := b.dirty(s.ChangesSince(b.at), s)
	b.at = s.Version()
	gone, come := map[federation.ObjectKey]*config.Object{}, map[federation.ObjectKey]*config.Object{}
	for _, key := range dirty {
		old, now := b.units[key], unit{}
		_, exists := s.Object(key)
		if exists {
			now = b.compute(s, key)
		}
		b.index.Replace(key, old.read, now.read)
		for _, o := range old.objects {
			gone[o.Key] = o
		}
		for i, o := range now.objects {
			if before := find(old.objects, o.Key); before != nil && before.Alike(o) {
				now.objects[i] = before
			}
			come[o.Key] = now.objects[i]
		}
		b.count(key.Cluster, old.hosts, -1)
		b.count(key.Cluster, now.hosts, 1)
		b.worse = b.worse || !slices.Equal(old.problems, now.problems)
		if exists {
			b.units[key] = now
		} else {
			delete(b.units, key)
		}
		b.kept.set(key, exists, now.status)
	}
	b.kept.tell(len(dirty) > 0)
	var events []config.Event
	for key, o := range come {
		if gone[key] != o {
			events = append(events, config.Event{Old: gone[key], New: o})
		}
	}
	for key, o := range gone {
		if come[key] == nil {
			events = append(events, config.Event{Old: o})
		}
	}
	slices.SortFunc(events, config.Event.Compare)
	return events
}

func find(objects []*config.Object, key federation.ObjectKey) *config.Object {
	i, found := slices.BinarySearchFunc(objects, key, func(o *config.Object, key federation.ObjectKey) int { return o.Key.Compare(key) })
	if !found {
		return nil
	}
	return objects[i]
}

// compute translates one object. After a panic, what was given stays, and the others go on.
func (b *translations) compute(s *federation.Snapshot, key federation.ObjectKey) (u unit) {
	r := s.Read()
	defer func() {
		if cause := recover(); cause != nil {
			u = unit{made: b.units[key].made, read: r.Deps(), problems: []config.Problem{{
				Code: federation.CodeHubFault, Object: key.String(),
				Message: fmt.Sprintf("the hub cannot translate the object, which is a fault of the hub; what was translated before stays (%.200v)",
					cause),
			}}}
		}
	}()
	m := translate(r, key)
	return unit{made: m, problems: m.status.problems(), read: r.Deps()}
}

// everything is all that is given.
func (b *translations) everything() (events []config.Event) {
	for _, u := range b.units {
		for _, o := range u.objects {
			events = append(events, config.Event{New: o})
		}
	}
	slices.SortFunc(events, config.Event.Compare)
	return events
}

// wrong are all problems, sorted.
func (b *translations) wrong() (all []config.Problem) {
	for _, key := range slices.SortedFunc(maps.Keys(b.units), federation.ObjectKey.Compare) {
		all = append(all, b.units[key].problems...)
	}
	all = append(all, b.sharedHosts()...)
	slices.SortFunc(all, config.Problem.Compare)
	return slices.Compact(all)
}

// count counts Gateways of a cluster for the hosts.
func (b *translations) count(of federation.ClusterID, hosts []string, by int) {
	if of == "" {
		return
	}
	for _, host := range hosts {
		clusters := b.having[host]
		if clusters == nil {
			clusters = map[federation.ClusterID]int{}
			b.having[host] = clusters
		}
		if clusters[of] += by; clusters[of] == 0 {
			delete(clusters, of)
		}
		_, was := b.shared[host]
		switch is := len(clusters) > 1; {
		case is && !was:
			b.shared[host], b.worse = struct{}{}, true
		case !is && was:
			delete(b.shared, host)
			b.worse = true
		}
		if len(clusters) == 0 {
			delete(b.having, host)
		}
	}
}

// shownHosts bounds the hosts that one problem names.
const shownHosts = 10

// sharedHosts is the problem that Gateways of several clusters have the same hosts.
func (b *translations) sharedHosts() []config.Problem {
	if len(b.shared) == 0 {
		return nil
	}
	names, more := text.First(slices.Sorted(maps.Keys(b.shared)), shownHosts)
	return []config.Problem{{Code: codeHostShared, Object: "objects of the Gateway API", Message: fmt.Sprintf(
		"Gateways of several clusters have the hosts %q%s: the proxies of each cluster use those of their own cluster", names, more)}}
}
