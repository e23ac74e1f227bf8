package xds

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// becomes waits until the only proxy's report is the wanted one.
func (h *hub) becomes(what string, ask func(context.Context) []Report, want Standing) Report {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last []Report
	for ctx.Err() == nil {
		if last = ask(ctx); len(last) == 1 && last[0].Standing == want {
			return last[0]
		}
	}
	h.t.Fatalf("%s: the reports are %+v, want one %s", what, last, want)
	return Report{}
}

func TestRolloutTellsHowFarAProxyIs(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h, c := clusterClient(t, delta)
		at := func(version uint64) func(context.Context) []Report {
			return func(ctx context.Context) []Report { return h.server.Rollout(ctx, version) }
		}
		before := h.aggregate.Latest().Version()
		h.becomes("a later version that changed nothing yet", at(before+1), Waiting)
		h.set(service("more", 2))
		version := h.aggregate.Latest().Version()
		r := c.next(xdstest.CDS)
		h.becomes("sent", at(version), Delivered)
		c.nack(r, "Error adding/updating cluster(s) "+cluster("more")+": unknown something")
		if !delta {
			c.accept(xdstest.CDS)
		}
		if got := h.becomes("refused", at(version), Rejected); !strings.Contains(got.Error, "unknown something") {
			t.Errorf("the error is %q", got.Error)
		}
		h.set(service("third", 3))
		version = h.aggregate.Latest().Version()
		c.accept(xdstest.CDS)
		h.becomes("a later change is not held responsible for an earlier refusal", at(version), Accepted)
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
	h.becomes("clusters are as they were", func(ctx context.Context) []Report { return h.server.Rollout(ctx, version) }, Unconcerned)
}

func TestObjectTellsWhoUsesAndWhoRefusesIt(t *testing.T) {
	h := newHub(t)
	bank := federation.ServiceKey{Hostname: "pay.bank.svc.cluster.local", Namespace: "bank"}
	h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{bank: httpShard(1)}})
	rule := &federation.Object{
		Key:   federation.ObjectKey{Group: "networking.istio.io", Kind: "DestinationRule", Namespace: "shop", Name: "pay"},
		Names: []string{string(bank.Hostname)}, Spec: &networking.DestinationRule{Host: string(bank.Hostname)},
	}
	ask := func(ctx context.Context) []Report { return h.server.Object(ctx, rule.Key) }
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
	h.becomes("there is no such object", ask, Unconcerned)
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{
		Set: map[federation.ObjectKey]*federation.Object{rule.Key: rule},
	}})
	h.becomes("the cluster is made by the rule now, and is what the proxy has", ask, Accepted)
	wide := httpShard(1)
	wide.Resolution = federation.DNSLB
	h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{bank: wide}})
	r := c.next(xdstest.CDS)
	h.becomes("sent", ask, Delivered)
	c.nack(r, "outbound|80||pay.bank.svc.cluster.local: no such thing")
	if got := h.becomes("refused", ask, Rejected); !strings.Contains(got.Error, "no such thing") || got.Proxy.NodeID != node("web-1").Id {
		t.Errorf("the report is %+v", got)
	}
}

// TestObjectThatJustChangedIsPending: nobody is told that a proxy has what was
// not even sent to it.
func TestObjectThatJustChangedIsPending(t *testing.T) {
	h := newHub(t)
	bank := federation.ServiceKey{Hostname: "pay.bank.svc.cluster.local", Namespace: "bank"}
	h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{bank: httpShard(1)}})
	c := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	c.get(xdstest.Request{Type: xdstest.CDS})
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
		if r := h.server.Object(t.Context(), rule.Key); len(r) != 1 || r[0].Standing != Waiting && r[0].Standing != Delivered {
			t.Fatalf("change %d, which nobody acknowledged, is told as %+v", i, r)
		}
		c.accept(xdstest.CDS)
		h.becomes("acknowledged", func(ctx context.Context) []Report { return h.server.Object(ctx, rule.Key) }, Accepted)
	}
}

// A stream that has ended is asked no more, and nobody waits for it.
func TestEndedStreamsAreNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		st := &stream{server: s, asked: make(chan question), over: make(chan struct{})}
		leave := s.enlist(st)
		asked := make(chan []Report)
		go func() { asked <- s.Rollout(t.Context(), 1) }()
		synctest.Wait()
		leave()
		if got := <-asked; len(got) != 0 {
			t.Errorf("an ended stream reports %+v", got)
		}
	})
}
