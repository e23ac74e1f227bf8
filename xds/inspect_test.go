package xds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// progress is asked of a value of the fleet.
type progress func(*fleet.Value) []fleet.Progress

// becomes waits until the only proxy's progress is the wanted one.
func (h *hub) becomes(what string, ask progress, want fleet.RolloutState) fleet.Progress {
	h.t.Helper()
	var last []fleet.Progress
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		of := h.fleet.Latest()
		last = ask(of)
		switch {
		case len(last) == 1 && last[0].State == want:
			return last[0]
		case len(last) == 0 && want == fleet.Unaffected && of.Count() == 1:
			return fleet.Progress{}
		}
		select {
		case <-of.Superseded():
		case <-ctx.Done():
			h.t.Fatalf("%s: the progress is %+v, want one proxy %d", what, last, want)
		}
	}
}

func rolloutOf(version uint64) progress {
	return func(of *fleet.Value) []fleet.Progress { return of.Rollout(version) }
}

func (h *hub) objectProgress(key federation.ObjectKey) progress {
	return func(of *fleet.Value) []fleet.Progress {
		return slices.Collect(h.server.Object(h.aggregate.Latest(), of, key).Proxies())
	}
}

func TestRolloutTellsHowFarAProxyIs(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h, c := clusterClient(t, delta)
		at := rolloutOf
		before := h.aggregate.Latest().Version()
		h.becomes("a later version that changed nothing yet", at(before+1), fleet.Waiting)
		h.set(service("more", 2))
		version := h.aggregate.Latest().Version()
		r := c.next(xdstest.CDS)
		h.becomes("sent", at(version), fleet.Delivered)
		c.nack(r, "Error adding/updating cluster(s) "+cluster("more")+": unknown something")
		if !delta {
			c.accept(xdstest.CDS)
		}
		if got := h.becomes("refused", at(version), fleet.Rejected); !strings.Contains(got.Error, "unknown something") {
			t.Errorf("the error is %q", got.Error)
		}
		h.set(service("third", 3))
		version = h.aggregate.Latest().Version()
		c.accept(xdstest.CDS)
		h.becomes("a later change is not held responsible for an earlier refusal", at(version), fleet.Accepted)
	})
}

func TestRolloutDoesNotConcernWhomItChangesNothing(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	c := h.client(xdstest.Options{Delta: true, Node: router()})
	c.get(xdstest.Request{Type: xdstest.CDS})
	more := service("web", 1, 2) // endpoints, which this client does not ask for
	h.set(more)
	version := h.aggregate.Latest().Version()
	h.becomes("clusters are as they were", rolloutOf(version), fleet.Unaffected)
}

func TestObjectTellsWhoUsesAndWhoRefusesIt(t *testing.T) {
	h := newHub(t)
	bank := federation.ServiceKey{Hostname: "pay.bank.svc.cluster.local", Namespace: "bank"}
	h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{bank: httpShard(1)}})
	rule := &federation.Object{
		Key:   federation.ObjectKey{Group: "networking.istio.io", Kind: "DestinationRule", Namespace: "shop", Name: "pay"},
		Names: []string{string(bank.Hostname)}, Spec: &networking.DestinationRule{Host: string(bank.Hostname)},
	}
	ask := h.objectProgress(rule.Key)
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
	h.becomes("there is no such object", ask, fleet.Unaffected)
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{
		Set: map[federation.ObjectKey]*federation.Object{rule.Key: rule},
	}})
	h.becomes("the cluster is made by the rule now, and is what the proxy has", ask, fleet.Accepted)
	wide := httpShard(1)
	wide.Resolution = federation.DNSLB
	h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{bank: wide}})
	r := c.next(xdstest.CDS)
	h.becomes("sent", ask, fleet.Delivered)
	c.nack(r, "outbound|80||pay.bank.svc.cluster.local: no such thing")
	if got := h.becomes("refused", ask, fleet.Rejected); !strings.Contains(got.Error, "no such thing") || got.NodeID != node("web-1").Id {
		t.Errorf("the report is %+v", got)
	}
}

// TestR42StatusLooksAtNoProxyThatHasAnObject: what an object costs does not depend on
// how many proxies have it, nor on how many do not get it.
func TestR42StatusLooksAtNoProxyThatHasAnObject(t *testing.T) {
	const proxies, objects = 12, 30
	h := newHub(t)
	h.set(service("web", 1))
	var rules []federation.ObjectKey
	edit := federation.Delta[federation.ObjectKey, *federation.Object]{Set: map[federation.ObjectKey]*federation.Object{}}
	for i := range objects {
		rule := ruleOf(fmt.Sprint("rule-", i), string(key("web").Hostname), i+1)
		edit.Set[rule.Key], rules = rule, append(rules, rule.Key)
	}
	h.writer.Update(federation.Edit{Objects: edit})
	var all []client
	for i := range proxies {
		c := h.client(xdstest.Options{Delta: true, Node: node(fmt.Sprint("web-", i))})
		c.get(xdstest.Request{Type: xdstest.CDS})
		c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web")}})
		all = append(all, c)
	}
	acked := func(want int) func(*fleet.Value) bool {
		return func(of *fleet.Value) bool {
			return h.server.Object(h.aggregate.Latest(), of, rules[0]).Accepted == want
		}
	}
	h.when("all have the rule", acked(proxies))
	visited := 0
	for _, rule := range rules {
		visited += h.server.Object(h.aggregate.Latest(), h.fleet.Latest(), rule).Visited
	}
	if visited != 0 {
		t.Errorf("%d looks at streams for %d objects that every proxy has", visited, objects)
	}
	h.set(service("web", 1, 2))
	for _, c := range all[1:] {
		c.accept(xdstest.EDS)
	}
	late := all[0].next(xdstest.EDS)
	h.when("one has not answered", acked(proxies-1))
	if a := h.server.Object(h.aggregate.Latest(), h.fleet.Latest(), rules[0]); a.Visited > 1 || a.Delivered != 1 {
		t.Errorf("%d looks at streams, %d without an answer, where one lacks what is new", a.Visited, a.Delivered)
	}
	all[0].ack(late)
	h.when("it answered", acked(proxies))
}

func ruleOf(name, host string, connections int) *federation.Object {
	return &federation.Object{
		Key:   federation.ObjectKey{Group: "networking.istio.io", Kind: "DestinationRule", Namespace: "shop", Name: name},
		Names: []string{host}, Digest: fmt.Sprint(connections),
		Spec: &networking.DestinationRule{Host: host, TrafficPolicy: &networking.TrafficPolicy{
			ConnectionPool: &networking.ConnectionPoolSettings{Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: int32(connections)}},
		}},
	}
}

// when waits until the fleet is so.
func (h *hub) when(what string, so func(*fleet.Value) bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		of := h.fleet.Latest()
		if so(of) {
			return
		}
		select {
		case <-of.Superseded():
		case <-ctx.Done():
			h.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// TestR42StatusWaitsForNoBuild: a query for an object's status does not wait
// for a busy stream.
func TestR42StatusWaitsForNoBuild(t *testing.T) {
	made, stuck, goOn := envoyBuilder, make(chan struct{}), make(chan struct{})
	var once sync.Once
	made.build = func(kind envoy.Type, name string, f envoy.Facet, r *federation.Reader) (proto.Message, []envoy.Reason, error) {
		if name == cluster("slow") && kind == envoy.ClusterType {
			once.Do(func() { close(stuck) })
			<-goOn
		}
		return envoy.Build(kind, name, f, r)
	}
	h := newHub(t, func(o *Options) { o.builder = &made })
	rule := ruleOf("web", string(key("web").Hostname), 1)
	h.set(service("web", 1))
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{
		Set: map[federation.ObjectKey]*federation.Object{rule.Key: rule},
	}})
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
	h.becomes("the proxy has it", h.objectProgress(rule.Key), fleet.Accepted)
	h.set(service("slow", 1))
	<-stuck // the only stream, with the lock of its group
	if got := h.objectProgress(rule.Key)(h.fleet.Latest()); len(got) != 1 || got[0].State == fleet.Rejected {
		t.Errorf("while the stream builds: %+v", got)
	}
	if got := rolloutOf(h.aggregate.Latest().Version())(h.fleet.Latest()); len(got) != 1 || got[0].State != fleet.Waiting {
		t.Errorf("the rollout, while the stream builds: %+v", got)
	}
	close(goOn)
	c.accept(xdstest.CDS)
}

// TestObjectThatJustChangedIsPending: the status never claims that a proxy has what was
// not even sent to it.
func TestObjectThatJustChangedIsPending(t *testing.T) {
	h := newHub(t)
	bank := federation.ServiceKey{Hostname: "pay.bank.svc.cluster.local", Namespace: "bank"}
	h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{bank: httpShard(1)}})
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
	h.becomes("the proxy has its clusters", rolloutOf(h.aggregate.Latest().Version()), fleet.Accepted)
	for i := range 20 {
		rule := &federation.Object{
			Key:      federation.ObjectKey{Group: "networking.istio.io", Kind: "DestinationRule", Namespace: "shop", Name: "pay"},
			Revision: int64(i + 1), Digest: fmt.Sprint(i), Names: []string{string(bank.Hostname)},
			Spec: &networking.DestinationRule{Host: string(bank.Hostname), TrafficPolicy: &networking.TrafficPolicy{
				ConnectionPool: &networking.ConnectionPoolSettings{Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: int32(i + 1)}},
			}},
		}
		h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{
			Set: map[federation.ObjectKey]*federation.Object{rule.Key: rule},
		}})
		if r := h.objectProgress(rule.Key)(h.fleet.Latest()); len(r) != 1 || r[0].State != fleet.Waiting && r[0].State != fleet.Delivered {
			t.Fatalf("change %d, which no proxy acknowledged, is reported as %+v", i, r)
		}
		c.accept(xdstest.CDS)
		h.becomes("acknowledged", h.objectProgress(rule.Key), fleet.Accepted)
	}
}
