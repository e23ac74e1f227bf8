package xds

import (
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// poisoned builds like xds/envoy, and panics in the named function at the service or object called poison.
func poisoned(where string, armed *atomic.Bool) *builder {
	made := envoyBuilder
	hurts := func(function string) {
		if function == where && armed.Load() {
			panic("poison")
		}
	}
	made.view = func(n envoy.Node, r *federation.Reader) envoy.View {
		hurts("view")
		return envoy.ViewOf(n, r)
	}
	made.fixed = func(t envoy.Type, f envoy.Facet, r *federation.Reader) []string {
		hurts("fixed")
		return envoy.Fixed(t, f, r)
	}
	made.contributes = func(t envoy.Type, f envoy.Facet, svc *federation.Service, r *federation.Reader) []string {
		if svc.Key == key("poison") {
			hurts("contributes")
			if _, kind, _ := strings.Cut(where, "names by "); kind != "" {
				if _, exists := r.Object(federation.ObjectKey{Group: "test", Kind: kind, Namespace: "shop", Name: "poison"}); exists {
					hurts(where)
				}
			}
		}
		return envoy.Contributes(t, f, svc, r)
	}
	made.build = func(t envoy.Type, name string, f envoy.Facet, r *federation.Reader) (proto.Message, []envoy.Reason, error) {
		m, reasons, err := envoy.Build(t, name, f, r)
		if name == cluster("poison") {
			hurts("build")
		}
		return m, reasons, err
	}
	return &made
}

// poisonKinds are the kinds of objects that builders read.
var poisonKinds = []string{
	"VirtualService", "DestinationRule", "Gateway", "ServiceEntry", "WorkloadEntry", "Sidecar", "EnvoyFilter",
	"ProxyConfig", "Telemetry", "WasmPlugin",
	"AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication", "HTTPRoute", "GRPCRoute", "ServiceExport", "MeshSettings", "Network",
}

func poisonObject(kind string) federation.Edit {
	k := federation.ObjectKey{Group: "test", Kind: kind, Namespace: "shop", Name: "poison"}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{k: {Key: k, Digest: kind}}}}
}

func goneObject(kind string) federation.Edit {
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Gone: []federation.ObjectKey{{Group: "test", Kind: kind, Namespace: "shop", Name: "poison"}}}}
}

// TestR12PoisonObjects: whatever a service or an object makes panic, streams that are open stay and get what concerns other
// services, and so do new ones; only one that has nothing to fall back on ends.
func TestR12PoisonObjects(t *testing.T) {
	places := []string{"view", "fixed", "contributes", "build"}
	for _, kind := range poisonKinds {
		places = append(places, "names by "+kind)
	}
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			var armed atomic.Bool
			h := newHub(t, func(o *Options) { o.builder = poisoned(place, &armed) })
			h.set(service("web", 1), service("poison", 1))
			c := h.client(xdstest.Options{Delta: true})
			c.get(xdstest.Request{Type: xdstest.CDS})
			armed.Store(true)
			for _, kind := range poisonKinds {
				h.writer.Update(poisonObject(kind))
			}
			changed := service("poison", 1, 2)
			changed.Set[key("poison")].Resolution = federation.DNSLB
			h.set(changed, service("after", 1))
			c.until(cluster("after"))
			said := func() (found []envoy.Reason) {
				switch kind, spoken := strings.CutPrefix(place, "names by "); {
				case spoken:
					return h.server.Reasons(federation.ObjectKey{Group: "test", Kind: kind, Namespace: "shop", Name: "poison"})
				case place == "contributes" || place == "build":
					return h.server.ServiceReasons(key("poison"))
				}
				return nil
			}
			isSaid := strings.HasPrefix(place, "names by ") || place == "contributes" || place == "build"
			if found := said(); isSaid != (len(found) == 1 && found[0].Code == HubFault) {
				t.Errorf("reported on the poison: %v", found)
			}
			fresh := h.client(xdstest.Options{Delta: true})
			if place != "view" {
				fresh.get(xdstest.Request{Type: xdstest.CDS})
			} else {
				_ = fresh.Send(xdstest.Request{Type: xdstest.CDS})
				if err := fresh.ends(); status.Code(err) != codes.Internal {
					t.Errorf("a stream that has nothing to fall back on: %v", err)
				}
			}
			armed.Store(false)
			h.set(service("poison", 1, 2, 3), service("healed", 1))
			for _, kind := range poisonKinds {
				h.writer.Update(goneObject(kind))
			}
			h.set(service("last", 1))
			c.until(cluster("last"))
			if found := said(); len(found) != 0 {
				t.Errorf("when it is healed, %v", found)
			}
		})
	}
}

// until accepts responses until one has the cluster.
func (c client) until(name string) {
	c.t.Helper()
	for {
		if _, has := c.accept(xdstest.CDS).Resources[name]; has {
			return
		}
	}
}

// poisonReports panic at what one address is reported as.
type poisonReports struct{ *reports }

func (r poisonReports) Found(prober string, observer federation.NetworkID, reached map[netip.AddrPort]bool) {
	if _, is := reached[netip.MustParseAddrPort("192.0.2.2:15443")]; is {
		panic("poison")
	}
	r.reports.Found(prober, observer, reached)
}

// TestR12AReportThatPanicsEndsItsStreamAlone: the wall of the health discovery service.
func TestR12AReportThatPanicsEndsItsStreamAlone(t *testing.T) {
	found, log, counts := newReports(), &testbed.LogText{}, &eventCounts{events: map[Event]int{}}
	h := newHub(t, func(o *Options) {
		o.Probes, o.Metrics, o.Logger = poisonReports{found}, counts, slog.New(slog.NewTextHandler(log, nil))
	})
	h.gatewaysIn("shop")
	h.gatewaysOf("n2", "192.0.2.1", "192.0.2.2")
	bystander, poisonous := h.checker(router()), h.checker(router())
	bystander.told()
	poisonous.told()
	poisonous.report("192.0.2.2", corev3.HealthStatus_HEALTHY)
	if _, err := poisonous.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("the stream ends with %v, want Internal", err)
	}
	bystander.report("192.0.2.1", corev3.HealthStatus_HEALTHY)
	found.await(t, 1, "default map[192.0.2.1:15443:true]")
	if n := counts.of(StreamPanic); n != 1 || strings.Count(log.String(), "it panicked") != 1 {
		t.Errorf("%d panics are counted; the log:\n%s", n, log)
	}
	again := h.checker(router())
	again.told()
}
