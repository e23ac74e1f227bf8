package xds

import (
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// drive is a stream with a clock that only the test moves.
type drive struct {
	t         testing.TB
	aggregate *federation.Aggregate
	writer    *federation.Writer
	state     *streamState
	now       time.Time
	events    map[Event]int
}

func newDrive(t testing.TB, delta bool, n envoy.Node) *drive {
	d := &drive{t: t, aggregate: federation.NewAggregate(nil), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), events: map[Event]int{}}
	d.writer = d.aggregate.Open(source1)
	groups := map[groupKey]*group{}
	open := func(kind envoy.Type) []source {
		var sources []source
		for _, f := range envoy.Facets(kind, n, d.aggregate.Latest()) {
			key := groupKey{kind, f}
			if groups[key] == nil {
				groups[key] = newGroup(kind, f, envoyBuilder)
			}
			sources = append(sources, groups[key])
		}
		return sources
	}
	d.state = &streamState{
		delta: delta, timing: defaultTiming, latest: d.aggregate.Latest, open: open,
		reopen: func(envoy.Type) []source { return nil }, prefix: "n",
		count: func(e Event, _ envoy.Type) { d.events[e]++ }, answered: func(envoy.Type, time.Duration) {}, subs: map[envoy.Type]*subscription{},
		warming: map[string]struct{}{}, shared: newFallbacks(), names: newNameTable(),
	}
	return d
}

func sidecarNode(t testing.TB) envoy.Node {
	n, err := envoy.ParseNode(node("web-1"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func routerNode(t testing.TB) envoy.Node {
	n, err := envoy.ParseNode(router())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (d *drive) set(services ...serviceDelta) {
	for _, s := range services {
		d.writer.Update(federation.Edit{Services: s})
	}
	d.state.collect(d.aggregate.Latest(), d.now)
}

// ask sends the request and returns the answers.
func (d *drive) ask(r request) []*response {
	d.state.handle(r, d.now)
	return d.due()
}

// due returns every response that goes now.
func (d *drive) due() []*response {
	var all []*response
	for {
		r, _ := d.state.next(d.now)
		if r == nil {
			return all
		}
		all = append(all, r)
	}
}

// after moves the clock and returns what goes then.
func (d *drive) after(wait time.Duration) []*response {
	d.now = d.now.Add(wait)
	return d.due()
}

// wakes is how long the stream wants to be left alone; 0: until told.
func (d *drive) wakes() time.Duration {
	r, at := d.state.next(d.now)
	if r != nil {
		d.t.Fatalf("%s goes now", r.kind)
	}
	if at.IsZero() {
		return 0
	}
	return at.Sub(d.now)
}

func (d *drive) ack(r *response) []*response {
	return d.ask(d.answer(r))
}

func (d *drive) nack(r *response, text string) []*response {
	q := d.answer(r)
	q.refused, q.errorText = true, text
	return d.ask(q)
}

func (d *drive) answer(r *response) request {
	q := request{kind: r.kind, nonce: r.nonce}
	if sub := d.state.subs[r.kind]; !d.state.delta {
		for name := range sub.client.slots.allNamed() {
			q.names = append(q.names, name)
		}
	}
	return q
}

// start asks for the types and accepts everything.
func (d *drive) start(requests ...request) {
	d.t.Helper()
	for _, q := range requests {
		d.state.handle(q, d.now)
		d.accept()
	}
}

// accept accepts everything that comes; a minute later nothing is due.
func (d *drive) accept() {
	d.t.Helper()
	for queue := d.due(); len(queue) > 0; queue = queue[1:] {
		queue = append(queue, d.ack(queue[0])...)
	}
	d.now = d.now.Add(time.Minute)
}

// one is the only response there is, of the kind.
func (d *drive) one(all []*response, kind envoy.Type) *response {
	d.t.Helper()
	if len(all) != 1 || all[0].kind != kind {
		d.t.Fatalf("got %s, want one %s", kinds(all), kind)
	}
	return all[0]
}

func (d *drive) none(all []*response) {
	d.t.Helper()
	if len(all) != 0 {
		d.t.Fatalf("got %s, want nothing", kinds(all))
	}
}

func kinds(all []*response) (list []envoy.Type) {
	for _, r := range all {
		list = append(list, r.kind)
	}
	return list
}

func (r *response) has(name string) bool {
	for _, res := range r.resources {
		if res.name == name {
			return true
		}
	}
	return false
}

// envoyOrder are the types of everyType, in the order of pushes.
var envoyOrder = slices.DeleteFunc(slices.Clone(pushOrder), func(kind envoy.Type) bool {
	return !slices.ContainsFunc(everyType, func(r request) bool { return r.kind == kind })
})

// everyType is what Envoys ask for.
var everyType = []request{
	{kind: envoy.ClusterType},
	{kind: envoy.EndpointType, names: []string{cluster("web")}},
	{kind: envoy.ListenerType},
	{kind: envoy.RouteType, names: []string{"80"}},
}

// hidden is a service that the tests' proxies do not see.
func hidden() map[federation.ServiceKey]*federation.Shard {
	shard := httpShard(1)
	shard.ExportTo = []string{"elsewhere"}
	return map[federation.ServiceKey]*federation.Shard{key("hidden"): shard}
}
