package xds

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// refusals counts refusals that no object caused, by type.
type refusals struct {
	mu    sync.Mutex
	found []envoy.Type
}

// Count is part of Metrics.
func (r *refusals) Count(e Event, t envoy.Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e == UntracedRefusal {
		r.found = append(r.found, t)
	}
}

// Answered is part of Metrics.
func (*refusals) Answered(envoy.Type, time.Duration) {}

func (r *refusals) all() []envoy.Type {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.found)
}

// sharedLog is a log that may be read while it is written.
type sharedLog struct{ testbed.LogText }

func (l *sharedLog) has(words ...string) bool {
	return slices.ContainsFunc(strings.Split(l.String(), "\n"), func(line string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
	})
}

// meshRoute is a VirtualService by which sidecars answer requests to the service with
// the text.
func meshRoute(service, text string) *federation.Object {
	o := answering(service, text)
	host := string(key(service).Hostname)
	o.Names, o.Digest = []string{host}, text
	spec := o.Spec.(*networking.VirtualService)
	spec.Hosts, spec.Gateways = []string{host}, nil
	return o
}

// refuseRoutes answers all responses until the stream ends: it refuses those in which a
// virtual host is bad, and says only what is bad about one, not which it is.
func (c client) refuseRoutes(bad func(*routev3.VirtualHost) string) {
	for {
		r, err := c.Receive(context.Background())
		if err != nil {
			return
		}
		text := ""
		for _, packed := range r.Resources {
			var routes routev3.RouteConfiguration
			if err := packed.UnmarshalTo(&routes); err != nil {
				c.t.Error(err)
			}
			for _, host := range routes.GetVirtualHosts() {
				text += bad(host)
			}
		}
		if text == "" {
			err = c.Ack(r)
		} else {
			err = c.Nack(r, text)
		}
		if err != nil {
			return
		}
	}
}

// TestR05ARefusedPartThatNoObjectMadeBlamesNobody: a proxy refuses the virtual host of a service of a registry, and that of a
// VirtualService. The former is logged and counted, and no object is to blame for it; the latter is reported on its own object
// with the part's name and the proxy's error.
func TestR05ARefusedPartThatNoObjectMadeBlamesNobody(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		counted, log := &refusals{}, &sharedLog{}
		h := newHub(t, func(o *Options) { o.Metrics, o.Logger = counted, slog.New(slog.NewTextHandler(log, nil)) })
		h.set(service("web", 1), service("bad", 2), service("worse", 3))
		web, worse := meshRoute("web", "hello"), meshRoute("worse", "refuse me")
		h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{
			web.Key: web, worse.Key: worse,
		}}})
		c := h.client(xdstest.Options{Delta: delta})
		c.ask(xdstest.Request{Type: xdstest.RDS, Names: []string{"80"}})
		var answering sync.WaitGroup
		answering.Go(func() {
			c.refuseRoutes(func(host *routev3.VirtualHost) string {
				switch route := host.GetRoutes()[0]; {
				case strings.Contains(route.GetRoute().GetCluster(), "||bad"):
					return "a bad cluster;"
				case route.GetDirectResponse().GetBody().GetInlineString() == "refuse me":
					return "a bad answer;"
				}
				return ""
			})
		})
		t.Cleanup(func() { c.Close(); answering.Wait() })
		of := func(v *fleet.Value, o *federation.Object) []fleet.Progress {
			return slices.Collect(h.server.Object(h.aggregate.Latest(), v, o.Key).Proxies())
		}
		const title = `virtual host "worse.shop.svc.cluster.local:80" of route configuration "80"`
		h.eventually("the refused VirtualService says what was refused", func(v *fleet.Value) bool {
			found := of(v, worse)
			return len(found) == 1 && found[0].State == fleet.Rejected && !found[0].Searching && found[0].Part == title &&
				found[0].Error == "a bad answer;"
		})
		h.eventually("the good VirtualService is accepted", func(v *fleet.Value) bool {
			found := of(v, web)
			return len(found) == 1 && found[0].State == fleet.Accepted
		})
		if found := counted.all(); !slices.Equal(found, []envoy.Type{envoy.RouteType}) {
			t.Errorf("counted %v", found)
		}
		if !log.has("level=WARN", `virtual host \"bad.shop.svc.cluster.local:80\" of route configuration \"80\"`, "a bad cluster", "node=") {
			t.Errorf("the log has not what was refused: %s", log.String())
		}
	})
}

// TestR92RefusalsSayWhy: a proxy that refuses a listener altogether, with and without a reason: each line of the log
// says why, or that the proxy did not say so.
func TestR92RefusalsSayWhy(t *testing.T) {
	for said, want := range map[string]string{"cannot bind: no such address": "cannot bind: no such address", " ": unexplained} {
		t.Run(want, func(t *testing.T) {
			log := &sharedLog{}
			h := newHub(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
			h.set(service("web", 1))
			c := h.client(xdstest.Options{Delta: true})
			c.ask(xdstest.Request{Type: xdstest.LDS})
			var answering sync.WaitGroup
			answering.Go(func() {
				for {
					r, err := c.Receive(context.Background())
					if err != nil || c.Nack(r, said) != nil {
						return
					}
				}
			})
			h.eventually("the hub knows what is refused", func(v *fleet.Value) bool {
				all := v.ByID(node("web-1").Id)
				return len(all) == 1 && strings.Contains(all[0].Refusals(), "filter chain") && all[0].Sync[xdstest.LDS].LastError == want
			})
			c.Close()
			answering.Wait()
			h.eventually("the proxy is gone", func(v *fleet.Value) bool { return v.Count() == 0 })
			if !log.has("what no object made", `name="filter chain`) {
				t.Errorf("the log has not what is refused: %s", log.String())
			}
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "rejected") && !strings.Contains(line, `err="`+want+`"`) {
					t.Errorf("the log has not why: %s", line)
				}
			}
		})
	}
}
