// Package gatewayapi is a source of configuration: what the Gateways and routes of the
// Gateway API mean, as Gateways and VirtualServices of Istio (ADR 129). It reads the objects
// that other sources give. What they mean is a function of a snapshot.
package gatewayapi

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/translated"
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
	return []federation.Kind{
		federation.GatewayKind, federation.VirtualServiceKind, federation.BackendTLSKind, federation.ClientCertificateKind,
	}
}

// Run is part of config.Source. It runs once at a time. The first Update waits for the
// sources of the objects, and, where there are any, for the services of clusters that
// are being read: a backend that is not known yet would be reported and refused.
func (s *Source) Run(ctx context.Context, to config.Sink) error {
	b, first, waited := newTranslations(&s.kept), true, false
	patience := time.NewTimer(s.o.Patience)
	defer patience.Stop()
	for {
		view, snapshot := s.views.Latest(), s.o.Snapshots.Latest()
		if !first || given(view) && (waited || !hasUnits(snapshot) || allListed(snapshot)) {
			events := b.take(snapshot)
			if first {
				events = b.set.Everything()
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
			b.set.Complain(to, nil, s.o.Logger)
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
	return view.SyncedFor(federation.GatewayAPI.Gateway)
}

func hasUnits(snapshot *federation.Snapshot) bool {
	return slices.ContainsFunc(unitKinds, func(of federation.Kind) bool {
		for range snapshot.Objects().Of(of) {
			return of != federation.GatewayAPI.GatewayClass // a class alone needs nothing of clusters
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

// words are those of problems and of the log.
var words = translated.Words{
	Object: "object of the Gateway API", All: "objects of the Gateway API",
	Shared: "Gateways of several clusters have the hosts %q%s: the proxies of each cluster use those of their own cluster",
}

// translations has what Gateways and routes were translated to, and what that was computed from.
type translations struct {
	at   uint64 // version of the snapshot up to which changes were looked at
	set  *translated.Set[federation.ObjectKey]
	kept *statuses // nil: nobody reads the statuses
}

func newTranslations(kept *statuses) *translations {
	return &translations{kept: kept, set: translated.New(words, federation.ObjectKey.String)}
}

// unitKinds are the kinds of objects that are translated or have a status.
var unitKinds = append(translators.Kinds(), Routes()...)

// dirty are the objects that are to be translated again.
func (b *translations) dirty(changes federation.ChangeSet, s *federation.Snapshot) []federation.ObjectKey {
	dirty := b.set.Affected(changes, s)
	if changes.All {
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
	events := b.set.Update(dirty, func(key federation.ObjectKey, u *translated.Unit) bool { return b.compute(s, key, u) })
	b.kept.tell(len(dirty) > 0)
	return events
}

// compute translates one object.
func (b *translations) compute(s *federation.Snapshot, key federation.ObjectKey, u *translated.Unit) (exists bool) {
	_, exists = s.Object(key)
	if !exists {
		b.kept.set(key, false, Status{})
		return false
	}
	r := s.Read()
	defer func() { u.Read = r.Deps() }()
	m := translate(r, key)
	u.Objects, u.Problems = m.objects, m.status.problems()
	u.Cluster, u.Hosts = key.Cluster, m.hosts
	b.kept.set(key, true, m.status)
	return true
}
