package xds

import (
	"fmt"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// defects are what Envoy refuses in a virtual host whose answers have the name of
// the defect: each is accepted by every rule of the schema.
var defects = map[string]func(*routev3.VirtualHost){
	"a format that does not exist": func(h *routev3.VirtualHost) {
		h.RequestHeadersToAdd = []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "x", Value: "%NOPE()%"}}}
	},
	"a header that must stay": func(h *routev3.VirtualHost) { h.RequestHeadersToRemove = []string{":path"} },
	"a filter that is unknown": func(h *routev3.VirtualHost) {
		h.TypedPerFilterConfig = map[string]*anypb.Any{"nope": {TypeUrl: "type.googleapis.com/nope.v1.Nope"}}
	},
	"a path that ends with a slash": func(h *routev3.VirtualHost) {
		h.Routes[0].Match.PathSpecifier = &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: "/ends-with/"}
	},
}

// planting builds virtual hosts with defects.
func planting() *builder {
	made := envoyBuilder
	made.assemble = func(name string, f envoy.Facet, r *federation.Reader, p envoy.Parts) (*envoy.Assembled, []envoy.Reason, error) {
		a, reasons, err := envoy.AssembleRoutes(name, f, r, p)
		if a == nil {
			return a, reasons, err
		}
		c := &routev3.RouteConfiguration{}
		proto.Unmarshal(a.Bytes, c)
		for _, host := range c.GetVirtualHosts() {
			if plant := defects[host.GetRoutes()[0].GetDirectResponse().GetBody().GetInlineString()]; plant != nil {
				plant(host)
			}
		}
		a.Bytes, _ = proto.MarshalOptions{Deterministic: true}.Marshal(c)
		return a, reasons, err
	}
	return &made
}

func tenantKey(kind, tenant string) federation.ObjectKey {
	return federation.ObjectKey{Group: "networking.istio.io", Kind: kind, Namespace: "shop", Name: tenant}
}

func (r *real) objects(objects ...*federation.Object) {
	set := map[federation.ObjectKey]*federation.Object{}
	for _, o := range objects {
		o.Digest = o.Spec.(fmt.Stringer).String()
		set[o.Key] = o
	}
	r.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: set}})
}

// answering is a tenant's VirtualService that answers every request with the text.
func answering(tenant, text string, match ...*networking.HTTPMatchRequest) *federation.Object {
	return &federation.Object{
		Key: tenantKey("VirtualService", tenant), Names: []string{tenant + ".example.com", "gateway:shop/" + tenant},
		Spec: &networking.VirtualService{
			Hosts: []string{tenant + ".example.com"}, Gateways: []string{"shop/" + tenant},
			Http: []*networking.HTTPRoute{{Match: match, DirectResponse: &networking.HTTPDirectResponse{
				Status: 200, Body: &networking.HTTPBody{Specifier: &networking.HTTPBody_String_{String_: text}},
			}}},
		},
	}
}

// tenantGateway is a tenant's Gateway on ports that both tenants share.
func tenantGateway(tenant string, tls *networking.ServerTLSSettings) *federation.Object {
	host := tenant + ".example.com"
	return &federation.Object{
		Key: tenantKey("Gateway", tenant), ProxyLabels: []string{"istio"},
		Spec: &networking.Gateway{Selector: map[string]string{"istio": "ingress"}, Servers: []*networking.Server{
			{Port: &networking.Port{Number: 8081, Name: "http", Protocol: "HTTP"}, Hosts: []string{host}},
			{Port: &networking.Port{Number: 8443, Name: "https", Protocol: "HTTPS"}, Hosts: []string{host}, Tls: tls},
		}},
	}
}

func simpleTLS() *networking.ServerTLSSettings {
	return &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "web"}
}

// answered fails unless the tenant's host answers with the text.
func (e *edge) answered(tenant, text string) func() error {
	return func() error {
		r := e.namespace.Get("http://"+gatewayIP+":8081/", "Host", tenant+".example.com")
		if r.Err != nil || string(r.Body) != text {
			return fmt.Errorf("%s is answered with %d %q, %w", tenant, r.Status, r.Body, r.Err)
		}
		return nil
	}
}

// stands returns the progress of the only proxy with the object.
func (r *real) stands(key federation.ObjectKey, want fleet.RolloutState) func() error {
	return func() error {
		reports := slices.Collect(r.server.Object(r.server.options.Snapshots.Latest(), r.fleet.Latest(), key).Proxies())
		if len(reports) != 1 || reports[0].State != want || (want == fleet.Rejected) != (reports[0].Error != "") {
			return fmt.Errorf("%s: %+v, want %d", key, reports, want)
		}
		return nil
	}
}

// What Envoy refuses of one tenant does not keep the other's changes from it.
func TestR05ARefusedVirtualHostStopsNobodyElse(t *testing.T) {
	e := newEdge(t, planting())
	a, b := tenantKey("VirtualService", "a"), tenantKey("VirtualService", "b")
	e.objects(tenantGateway("a", simpleTLS()), tenantGateway("b", simpleTLS()), answering("a", "a0"), answering("b", "b0"))
	e.await("a to answer", e.answered("a", "a0"))
	regex := &networking.HTTPMatchRequest{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: "/(a{60}|b{60})*"}}}
	causes := map[string]*federation.Object{"an expression that this Envoy finds too large": answering("a", "bad", regex)}
	for name := range defects {
		causes[name] = answering("a", name)
	}
	round := 0
	for cause, bad := range causes {
		round++
		good, next := fmt.Sprintf("a%d", round), fmt.Sprintf("b%d", round)
		e.objects(answering("a", good))
		e.await(cause+": the good form of a", e.answered("a", good))
		e.objects(bad)
		e.await(cause+": the refusal to be shown", e.stands(a, fleet.Rejected))
		e.objects(answering("b", next))
		e.await(cause+": the change of b", e.answered("b", next))
		if err := e.answered("a", good)(); err != nil {
			t.Errorf("%s: what was accepted last is not in force: %v", cause, err)
		}
		e.await(cause+": b to be well", e.stands(b, fleet.Accepted))
		e.await(cause+": a to stay refused", e.stands(a, fleet.Rejected))
	}
	e.objects(answering("a", "fixed"))
	e.await("the correction", e.answered("a", "fixed"))
	e.await("everything to be accepted", e.inSync)
	e.await("a to be well", e.stands(a, fleet.Accepted))
}

// An Envoy that reconnects and rejects what it is sent first has no routes of
// its own to go on with: it gets all but the bad ones.
func TestR05AFreshEnvoyGetsAllButWhatItRefuses(t *testing.T) {
	e := newEdge(t, planting())
	e.objects(tenantGateway("a", simpleTLS()), tenantGateway("b", simpleTLS()), answering("a", "a0"), answering("b", "b0"))
	e.await("a to answer", e.answered("a", "a0"))
	e.await("everything to be accepted", e.inSync)
	e.stop()
	e.objects(answering("a", "a header that must stay"), answering("b", "b1"))
	e.envoy.Stop()
	e.serve()
	e.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "edge-again", Config: e.config, Namespace: e.namespace})
	e.await("b to answer", e.answered("b", "b1"))
	e.await("a to answer as before", e.answered("a", "a0"))
	e.await("the refusal to be shown", e.stands(tenantKey("VirtualService", "a"), fleet.Rejected))
}

// A new listener with a single filter chain cannot be divided. One that Envoy cannot
// open is tried a few times, not for as long as it is there.
func TestR05AListenerThatCannotBeOpenedIsLeftAlone(t *testing.T) {
	e := newEdge(t)
	bound := tenantGateway("a", simpleTLS())
	spec := bound.Spec.(*networking.Gateway)
	spec.Servers = spec.Servers[:1]
	spec.Servers[0].Port.Number, spec.Servers[0].Bind = 8085, "192.0.2.1"
	e.objects(bound, tenantGateway("b", simpleTLS()), answering("a", "a0"), answering("b", "b0"))
	e.await("the refusal to be shown", e.stands(bound.Key, fleet.Rejected))
	for i := range 5 {
		text := fmt.Sprintf("b%d", i+1)
		e.objects(answering("b", text))
		e.await("the change of b", e.answered("b", text))
	}
	if n := e.counted(Nacked, envoy.ListenerType); n > 8 {
		t.Errorf("the listener was refused %d times", n)
	}
	e.objects(tenantGateway("a", simpleTLS()))
	e.await("the correction", e.answered("a", "a0"))
	e.await("a to be well", e.stands(bound.Key, fleet.Accepted))
}
