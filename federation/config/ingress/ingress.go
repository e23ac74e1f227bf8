// Package ingress is a read-only source of configuration: Ingresses of attached Kubernetes
// clusters, as Gateways and VirtualServices for the gateways of their own cluster (ADR 121).
// federation/config/crd reads them as it reads custom resources. What they mean is a
// function of what was read, of the settings of the mesh, and of the ports of services.
package ingress

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/wake"
)

// Kinds are what is read.
var Kinds = []schema.Kind{
	{Kind: federation.IngressKind, Plural: "ingresses", Singular: "ingress", Namespaced: true, Versions: []string{"v1"}, Storage: "v1"},
	{Kind: federation.IngressClassKind, Plural: "ingressclasses", Singular: "ingressclass", Versions: []string{"v1"}, Storage: "v1"},
}

// Wanted reports whether Ingresses are read, of every attached cluster, and whether their status
// is written. The settings may be nil.
func Wanted(m *federation.MeshSettings) (wanted, status bool) {
	return settingsOf(m).mode != federation.IngressOff, m != nil && m.IngressStatus
}

// Reader reads Ingresses and IngressClasses: a crd.Source of Kinds, as Wanted wants them.
type Reader interface {
	Settings(views interface{ Latest() *config.View })
	Run(ctx context.Context, to config.Sink) error
}

// Options say where Ingresses come from.
type Options struct {
	Snapshots interface{ Latest() *federation.Snapshot }
	Reader    Reader
	Patience  time.Duration // how long the first Update waits for services; 0: 10 s
	Logger    *slog.Logger
}

// Source is a config.Source.
type Source struct {
	o     Options
	views interface{ Latest() *config.View }
	wake  wake.Signal

	mu     sync.Mutex
	events []config.Event // that were read and not yet applied
	listed bool           // the first Update was read
	faults []config.Problem

	// Of Run alone.
	revision int64
}

// New makes a source, which needs Settings before it runs.
func New(o Options) *Source {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	return &Source{o: o, wake: wake.New()}
}

// Settings names the configuration whose MeshSettings say which Ingresses count.
func (s *Source) Settings(views interface{ Latest() *config.View }) {
	s.views = views
	s.o.Reader.Settings(views)
}

// Kinds is part of config.Source.
func (*Source) Kinds() []federation.Kind {
	return []federation.Kind{federation.GatewayKind, federation.VirtualServiceKind}
}

// Schema keeps of an Ingress and an IngressClass what decides about requests. The API
// server has validated them.
type Schema struct{}

// Admit is part of crd.Schema.
func (Schema) Admit(wanted map[string]any) (schema.Admitted, []schema.Problem) {
	from, _ := wanted["metadata"].(map[string]any)
	metadata := map[string]any{"name": from["name"]}
	if namespace, has := from["namespace"]; has {
		metadata["namespace"] = namespace
	}
	if annotations, has := from["annotations"].(map[string]any); has && annotations[classAnnotation] != nil {
		metadata["annotations"] = map[string]any{classAnnotation: annotations[classAnnotation]}
	}
	return schema.Admitted{Object: map[string]any{
		"apiVersion": networkingv1.SchemeGroupVersion.String(), "kind": wanted["kind"], "metadata": metadata, "spec": wanted["spec"],
	}}, nil
}

// update takes what was read.
func (s *Source) update(u config.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.listed = append(s.events, u.Events...), true
	s.wake.Notify()
}

func (s *Source) trouble(problems []config.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = problems
	s.wake.Notify()
}

// reading is the sink of what is read.
type reading struct{ *Source }

// Update is part of config.Sink.
func (r reading) Update(u config.Update) { r.update(u) }

// Trouble is part of config.Sink.
func (r reading) Trouble(problems []config.Problem) { r.trouble(problems) }

// Run is part of config.Source. It runs once at a time. Where Ingresses are served, the first
// Update waits as that of custom resources does, and for the services of clusters that are
// being read: a port that is named is not known before.
func (s *Source) Run(ctx context.Context, to config.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	s.reset()
	running.Go(func() { _ = s.o.Reader.Run(ctx, reading{s}) }) // ends with the context alone
	b, first := newTranslations(), true
	patience := time.NewTimer(s.o.Patience)
	defer patience.Stop()
	waited := false
	for {
		view, snapshot := s.views.Latest(), s.o.Snapshots.Latest()
		faults, listed := s.takeUp(b, view, snapshot)
		ready := waited || b.settings.mode == federation.IngressOff || allListed(snapshot)
		if !first || listed && b.settings.mode != "" && ready {
			s.give(b, to, first)
			first = false
		}
		b.set.Complain(to, faults, s.o.Logger)
		select {
		case <-s.wake:
		case <-view.Superseded():
		case <-snapshot.Superseded():
		case <-patience.C:
			waited = true
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Source) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.listed, s.faults = nil, false, nil
}

// allListed reports whether the services of every cluster with Ingresses are known that can be.
// Ingresses name no others.
func allListed(snapshot *federation.Snapshot) bool {
	for c := range snapshot.Clusters() {
		if c.Spec.Provider.HasObjects() && !c.Listed && (c.Status.Phase == federation.Pending ||
			c.Status.Phase == federation.Syncing) {
			return false
		}
	}
	return true
}

// takeUp brings the translations up to what was read, the settings and the services.
func (s *Source) takeUp(b *translations, view *config.View, snapshot *federation.Snapshot) (faults []config.Problem, listed bool) {
	s.mu.Lock()
	events := s.events
	s.events, faults, listed = nil, s.faults, s.listed
	s.mu.Unlock()
	if view.SyncedFor(federation.MeshSettingsKind) {
		if now, readable := settingsIn(view.State); readable {
			b.configure(now)
		}
	}
	b.take(events)
	b.follow(snapshot)
	return faults, listed
}

// settingsIn reads the settings. Settings that cannot be decoded change nothing.
func settingsIn(state *config.State) (settings, bool) {
	if _, exists := state.Object(federation.MeshSettingsKey); !exists {
		return settingsOf(nil), true
	}
	decoded, ok := state.Decoded(federation.MeshSettingsKey)
	if !ok {
		return settings{}, false
	}
	m, _ := decoded.Spec.(*federation.MeshSettings)
	return settingsOf(m), true
}

// give gives what changed.
func (s *Source) give(b *translations, to config.Sink, first bool) {
	events := b.change(s.revision + 1)
	if first {
		events = b.set.Everything()
	}
	if first || len(events) > 0 {
		s.revision++
		to.Update(config.Update{Revision: s.revision, Full: first, Events: events})
	}
}
