// Package mcp is a read-only source of configuration: a server of Istio's kinds over the
// Mesh Configuration Protocol, which is xDS with mcp.v1alpha1 resources (ADR 127). What
// cannot be used is named, and what was good before stays, also while the server is away.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/keyfile"
	"isthmus.dev/isthmus/internal/recordfile"
	"isthmus.dev/isthmus/internal/retry"
)

// OriginAnnotation names the hub in whose configuration an object is.
const OriginAnnotation = federation.MeshGroup + "/origin"

// Schema validates objects and fills in their defaults; kind.Schema does.
type Schema interface {
	Admit(wanted map[string]any) (schema.Admitted, []schema.Problem)
}

// Server is where a source reads.
type Server struct {
	Name    string            `yaml:"name"`
	Address string            `yaml:"address"` // HOST:PORT, or unix:PATH
	TLS     keyfile.ClientTLS `yaml:"tls"`     // read for each connection; zero: plaintext
	// Delta asks by delta xDS. A server that does not have it is asked by SotW.
	Delta bool `yaml:"delta"`
	// Namespace is that of the node that the hub says it is; Istio compares it with the
	// identity of the connection. Empty: istio-system.
	Namespace string   `yaml:"namespace"`
	Kinds     []string `yaml:"kinds"` // such as ServiceEntry.networking.istio.io; none: all of Istio's
}

// Source is how the source of the server is called.
func (s Server) Source() string { return "MCP " + s.Name }

// Check reports what is wrong with the settings of a server.
func (s Server) Check() error {
	host, port, err := net.SplitHostPort(s.Address)
	ip, _ := netip.ParseAddr(host)
	switch {
	case len(validation.IsDNS1123Label(s.Name)) > 0:
		return fmt.Errorf("name: %q is not 1 to 63 of a-z, 0-9 and -", s.Name)
	case !s.local() && (err != nil || host == "" || port == ""):
		return fmt.Errorf("address: %q is neither HOST:PORT nor unix:PATH", s.Address)
	case !s.local() && s.TLS == keyfile.ClientTLS{} && host != "localhost" && !ip.IsLoopback():
		return fmt.Errorf("address: %s is plaintext to another machine; set tls.ca", s.Address)
	}
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		return errors.New("tls: cert and key belong together; give both or none")
	}
	return nil
}

// local reports whether the server is at a socket of this machine.
func (s Server) local() bool { return strings.HasPrefix(s.Address, "unix:/") }

// Options say what is read and how. Zero fields from Limits on have the defaults named
// here.
type Options struct {
	Server
	Known    []schema.Kind // that the hub knows
	Schema   Schema
	Hub      federation.ClusterID // of the node that the hub says it is
	Origin   string               // what OriginAnnotation says in objects of this hub: they are excluded
	Limits   federation.Limits    // of what is kept
	Object   int                  // bytes of one object; default 1 MiB
	Answer   int                  // bytes of one answer; default 256 MiB
	Patience time.Duration        // how long the first Update waits for answers of all kinds; default 10 s
	Hold     time.Duration        // how long more than half of at least 20 objects must have been missing; default 10 s
	Pause    time.Duration        // the first one between two connections; they double up to 30 s; default 1 s
	Dir      string               // of files of what servers gave last; empty: nothing is kept
	Logger   *slog.Logger
	// Dial connects to the server; nil: over the network.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Source is a config.Source.
type Source struct {
	o      Options
	tables map[string]*table // by type URL
	asked  []*table          // by type URL, as they are asked for
	delta  bool              // whether to ask by delta xDS
	pings  time.Duration     // between two while nothing else is sent

	touched map[federation.ObjectKey]*table
	given   config.Given
	away    *config.Problem // why the server is not used
	said    []config.Problem
	used    federation.Usage

	keeper   *keeper
	kept     bool      // everything that is given is noted with the keeper
	restored time.Time // when what the last run gave was written; zero: all that is given was read by this one
}

// New names the server; Run connects to it.
func New(o Options) *Source {
	o.Limits = o.Limits.WithDefaults()
	o.Object, o.Patience = cmp.Or(o.Object, 1<<20), cmp.Or(o.Patience, 10*time.Second)
	o.Answer = cmp.Or(o.Answer, defaultAnswer)
	o.Hold, o.Pause = cmp.Or(o.Hold, 10*time.Second), cmp.Or(o.Pause, time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler)).With(slog.String("source", o.Source()))
	s := &Source{
		o: o, tables: map[string]*table{}, delta: o.Delta, pings: pingsOften, touched: map[federation.ObjectKey]*table{},
		keeper: newKeeper(o),
	}
	for _, k := range Kinds(o.Known) {
		if len(o.Kinds) == 0 || slices.Contains(o.Kinds, k.String()) {
			t := newTable(k)
			s.tables[t.url] = t
			s.asked = append(s.asked, t)
		}
	}
	s.restore()
	return s
}

// Kinds are those of the known kinds that servers of the protocol have: Istio's.
func Kinds(known []schema.Kind) (all []schema.Kind) {
	for _, k := range known {
		if strings.HasSuffix(k.Group, ".istio.io") {
			all = append(all, k)
		}
	}
	return all
}

// TypeURL is how the protocol names the kind.
func TypeURL(k schema.Kind) string { return k.APIVersion() + "/" + k.Name }

// Kinds is part of config.Source.
func (s *Source) Kinds() (all []federation.Kind) {
	for _, t := range s.asked {
		all = append(all, t.kind.Kind)
	}
	return all
}

// Run is part of config.Source. It runs once at a time. The first Update waits until the
// server answered for every kind, or for Options.Patience. It does not wait for a server that is
// away where there is what the last run read.
func (s *Source) Run(ctx context.Context, to config.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	var saving sync.WaitGroup
	defer saving.Wait()
	defer cancel()
	saving.Go(func() { recordfile.Save(ctx, s.keeper.wake, s.keeper.save, s.keeper.failed) })
	s.said = nil
	pauses := retry.Backoff{First: s.o.Pause, Longest: max(s.o.Pause, 30*time.Second)}
	patience, again, held := time.NewTimer(s.o.Patience), time.NewTimer(0), time.NewTimer(time.Hour)
	defer patience.Stop()
	defer again.Stop()
	defer held.Stop()
	var l *link
	defer func() { l.close() }()
	first, waited, began := true, false, time.Time{}
	for {
		first = s.publish(to, first, waited)
		s.complain(to)
		if left := s.leaves(time.Now()); left > 0 {
			held.Reset(left)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-patience.C:
			waited = true
		case <-again.C:
			l, began = s.dial(ctx), time.Now()
		case <-held.C:
		case e := <-l.events():
			if err := s.handle(l, e); err != nil {
				l.close()
				l = nil
				pauses.Began(began)
				pause := pauses.Next()
				again.Reset(pause)
				s.lost(err, pause)
			}
		}
	}
}

// handle handles what came over the link. An error ends the link.
func (s *Source) handle(l *link, e event) error {
	switch {
	case e.err != nil:
		return e.err
	case e.steady:
		s.found()
		return nil
	case e.answer == nil:
		return l.ask(s.asked)
	}
	if n := len(e.answer.version); n > mostName {
		return fmt.Errorf("the version of the server's answer has %d bytes, and the limit is %d", n, mostName)
	}
	s.found()
	t := s.tables[e.answer.url]
	if t == nil {
		return fmt.Errorf("the server answers for a type that was not asked for: %.200q", e.answer.url)
	}
	refused := s.take(t, e.answer, time.Now())
	return l.acknowledge(t, e.answer, refused)
}

func (s *Source) found() {
	if s.away != nil {
		s.o.Logger.Info("the configuration server answers again", slog.String("address", s.o.Address))
	}
	s.away = nil
}

// lost notes that nothing comes from the server. What was read stays.
func (s *Source) lost(err error, pause time.Duration) {
	if withoutDelta(err) && s.delta {
		s.delta = false
		return
	}
	if tooManyPings(err) && s.pings != pingsSeldom {
		s.pings = pingsSeldom
		return
	}
	read := "what was read"
	if !s.restored.IsZero() {
		read = "what the last run of the hub read until " + s.restored.Format(time.RFC3339)
	}
	s.away = &config.Problem{Code: codeUnreachable, Message: message(
		"the configuration server %s cannot be read, and %s stays; the hub tries again: %v", s.o.Address, read, err)}
	if tooLarge(err) {
		s.away = &config.Problem{Code: codeMany, Message: message(
			"an answer of the configuration server %s has more than %d bytes and is refused, and %s stays; the hub tries again: have the server serve fewer objects",
			s.o.Address, s.o.Answer, read)}
	}
	s.o.Logger.Debug("the configuration server cannot be read", slog.String("address", s.o.Address), slog.Any("err", err),
		slog.Duration("retryIn", pause))
}

// publish sends what changed, and in the first Update everything. It returns whether the
// first Update is still to come.
func (s *Source) publish(to config.Sink, first, waited bool) bool {
	old := !s.restored.IsZero() && s.away != nil
	if first && !waited && !old && !answered(s.asked) {
		return true
	}
	events := s.change()
	s.keep(events)
	switch {
	case first:
		to.Update(config.Update{Revision: s.given.Revision, Full: true, Events: s.given.Everything()})
	case len(events) > 0:
		to.Update(config.Update{Revision: s.given.Revision, Events: events})
	}
	return false
}

// change makes what was touched part of what is given, and returns what that changes.
func (s *Source) change() []config.Event {
	events := s.given.Change(func(yield func(federation.ObjectKey, *config.Object) bool) {
		for key, t := range s.touched {
			if !yield(key, t.object(key)) {
				return
			}
		}
	})
	clear(s.touched)
	return events
}
