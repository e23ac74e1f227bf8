package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

// syncer is the one goroutine's view of one Run: it owns the model and is the
// only one that speaks to the sink.
type syncer struct {
	r      *Registry
	to     Sink
	model  *model
	guard  *guard
	said   federation.RegistryStatus
	synced bool // a full edit was said
	polls  int  // requests open at once over HTTP/1; less after a 429
	proven datacenterIdentity

	translate *translator
	listIndex uint64
	services  map[string]reading // followed services, with the last answer
	relisted  time.Time
}

// reading is the last answer about one service.
type reading struct {
	index       uint64
	translation *translation
	streamed    bool
}

// listing is the services of Consul beside its own: the first names in order, as many as
// are followed, and how many there are beyond. It is kept while a list is followed, the
// whole answer, with tags, is not.
type listing struct {
	names []string
	over  int
}

func (l listing) equal(o listing) bool { return l.over == o.over && slices.Equal(l.names, o.names) }

// catalog is the answer of /catalog/services: names to tags, which are not used.
type catalog map[string][]string

func (c catalog) listing(most int) listing {
	all := make([]string, 0, len(c))
	for name := range c {
		if name != canaryService {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	first := min(len(all), most)
	return listing{names: slices.Clone(all[:first]), over: len(all) - first}
}

// list reads the names of all services, blocking with an index.
func (r *Registry) list(ctx context.Context, index uint64) (listing, answer, error) {
	var all catalog
	a, err := r.client.get(ctx, request{kind: CountServices, path: servicesPath, index: index, wait: r.o.Wait}, &all)
	var odd *unreadable
	if errors.As(err, &odd) {
		return listing{}, a, fmt.Errorf("reading the list of services: %w", err)
	}
	if err != nil {
		return listing{}, a, err
	}
	if _, visible := all[canaryService]; a.filtered || !visible {
		return listing{}, a, noRights()
	}
	return all.listing(r.o.MaxServices), a, nil
}

// read reads the instances of one service, blocking with an index. An answer
// that is not streamed says in its headers whether rights hid anything; a
// streamed one can lose instances without saying so (F63).
func (r *Registry) read(ctx context.Context, t *translator, name string, index uint64) (*translation, answer, error) {
	var entries []entry
	a, err := r.client.get(ctx, request{kind: CountHealth, path: "/v1/health/service/" + name, index: index, wait: r.o.Wait}, &entries)
	if err != nil {
		return nil, a, err
	}
	if a.filtered {
		return nil, a, noRights()
	}
	if entries == nil { // Consul answers an empty list where nothing is left
		return nil, a, &unreadable{msg: "the answer is not what Consul's API promises: it is null"}
	}
	o, err := r.translated(t, name, entries)
	return o, a, err
}

// translated is what the instances come to. A panic over them is an answer that
// cannot be used: of this service what was known stays, and the others go on (R12).
func (r *Registry) translated(t *translator, name string, entries []entry) (o *translation, err error) {
	hit := caught(func() {
		if r.o.poison != nil {
			r.o.poison(name)
		}
		o = t.service(name, entries)
	})
	if hit == nil {
		return o, nil
	}
	r.log.Error("leaving a service as it was: the hub panicked over it", "object", "Service "+plain(name), "panic",
		fmt.Sprint(hit.value), "stack", string(hit.stack))
	return nil,
		&unreadable{
			fault: true,
			msg: fmt.Sprintf("the hub cannot process this service, which is a fault of the hub; report it with the stack in the hub's log (%.200v)",
				hit.value),
		}
}

// sync proves the source, reads everything and says it as one full edit. An
// error leaves what was said before as it is.
func (s *syncer) sync(ctx context.Context) error {
	if err := s.guard.prove(ctx, true); err != nil {
		return err
	}
	s.guard.forgetServers()
	if err := s.guard.compareServers(ctx); err != nil {
		return err
	}
	id := s.guard.identity()
	s.translate = &translator{
		names: s.r.names, network: s.r.o.Network, datacenter: id.datacenter, ports: portChoice{s.r.o.InstancePort, s.r.o.ServicePort},
		accounts: s.r.accounts,
	}
	names, a, err := s.r.list(ctx, 0)
	if err != nil {
		return err
	}
	usable, translations := s.sort(names)
	read, err := s.readAll(ctx, usable)
	if err != nil {
		return err
	}
	if err := s.guard.prove(ctx, true); err != nil { // rights may have gone meanwhile
		return err
	}
	next := newModel()
	for name, o := range translations {
		next.set(name, o)
	}
	for name, got := range read {
		next.set(name, got.translation)
	}
	s.model, s.services = next, read
	s.listIndex, s.relisted = a.index, time.Now()
	s.proven = s.guard.identity()
	e := next.full()
	e.Identity = s.proven.edit()
	s.update(e)
	s.r.client.budget.keep(next.used)
	s.r.lastSync.Store(time.Now().UnixNano())
	s.synced = true
	return nil
}

func (s *syncer) update(e federation.Edit) {
	s.to.Update(e)
	s.r.lastEvent.Store(time.Now().UnixNano())
}

// sort splits the names into those that can be followed and the translations, with
// problems alone, of those that cannot.
func (s *syncer) sort(services listing) (usable []string, translations map[string]*translation) {
	translations = map[string]*translation{}
	if services.over > 0 {
		translations[""] = &translation{problems: []federation.Problem{{Code: "LIMIT", Object: "Service catalogue", Message: fmt.Sprintf(
			"%d services are beyond the limit of %d and are not used", services.over, s.r.o.MaxServices)}}}
	}
	for _, name := range services.names {
		if _, err := s.r.names.key(name, s.translate.datacenter); err != nil {
			translations[name] = s.translate.service(name, nil)
			continue
		}
		usable = append(usable, name)
	}
	return usable, translations
}

// readers is how many services are read at once in a sync.
const readers = 6

// readAll reads each service once. A service that cannot be read keeps what was known
// of it and has a problem; trouble of Consul as a whole ends it.
func (s *syncer) readAll(ctx context.Context, names []string) (map[string]reading, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer s.r.client.budget.sync(federation.Usage{})
	g := &gathered{most: len(names) / 2, budget: s.r.client.budget, read: map[string]reading{}}
	next := make(chan string)
	var wg sync.WaitGroup
	one := func(name string) {
		if ctx.Err() != nil {
			return
		}
		got, err := s.readFirst(ctx, name)
		if err == nil {
			err = g.add(name, got)
		}
		if err != nil {
			cancel(err)
		}
	}
	for range readers {
		wg.Go(func() {
			for name := range next {
				if p := caught(func() { one(name) }); p != nil {
					cancel(p)
				}
			}
		})
	}
	for _, name := range names {
		select {
		case next <- name:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return g.read, context.Cause(ctx)
}

// gathered is what a sync has read.
type gathered struct {
	most   int // services that may fail
	budget *budget

	mu     sync.Mutex
	read   map[string]reading
	failed int
	used   federation.Usage
}

// add notes a reading. It returns why the sync must end, if it must: a limit, or
// that most services fail, which is not the services' own trouble.
func (g *gathered) add(name string, got reading) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read[name] = got
	g.used = g.used.Add(got.translation.usage())
	g.budget.sync(g.used)
	if odd := got.translation.odd; odd != nil && odd.cause != nil {
		g.failed++
		if g.failed > g.most {
			return fmt.Errorf("%d services cannot be read, one of them %s: %w", g.failed, plain(name), odd.cause)
		}
	}
	return g.budget.limits.Check(g.used)
}

// readFirst reads a service for the first time in a sync. As long as the registry has
// not read it once, the state from an earlier registry of the same Consul is kept.
func (s *syncer) readFirst(ctx context.Context, name string) (reading, error) {
	o, a, err := s.readPatiently(ctx, name)
	if err == nil {
		return reading{index: a.index, translation: o}, nil
	}
	odd, err := s.own(ctx, err)
	if err != nil {
		return reading{}, fmt.Errorf("service %s: %w", plain(name), err)
	}
	o = s.spoilt(name, odd)
	o.kept = o.kept || s.model.translations[name] == nil && s.r.expect.known()
	return reading{translation: o}, nil
}

const (
	busyTries = 3
	busyPause = 4 * time.Second // at most, between them
)

// readPatiently reads a service. It gives a Consul that answers 429 time to make room.
func (s *syncer) readPatiently(ctx context.Context, name string) (o *translation, a answer, err error) {
	pauses := newBackoff()
	for tries := 1; ; tries++ {
		o, a, err = s.r.read(ctx, s.translate, name, 0)
		if !isBusy(err) || tries == busyTries || !retry.Sleep(ctx, min(pauses.next(err), busyPause)) {
			return o, a, err
		}
	}
}

// own tells a trouble of one service, which it returns, from one of Consul as a whole: the
// source proves to be in order. A proof counts for all failures of the time between two
// beats; the sync as a whole ends with another one.
func (s *syncer) own(ctx context.Context, err error) (*unreadable, error) {
	var odd *unreadable
	switch {
	case errors.As(err, &odd):
		return odd, nil
	case affectsDatacenter(err):
		return nil, err
	}
	if trouble := s.guard.proveSince(ctx, time.Now().Add(-beatEvery)); trouble != nil {
		return nil, trouble
	}
	return unreadableService(err), nil
}

// unreadableService is the trouble of a service whose read fails although Consul proves to be in order.
func unreadableService(err error) *unreadable { return &unreadable{msg: err.Error(), cause: err} }
