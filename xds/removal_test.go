package xds

import (
	"errors"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestR36DeletingTheOnlyGatewayWaitsForNothing: what is gone because its object was
// deleted needs no second proof, as a set of services that is empty does.
func TestR36DeletingTheOnlyGatewayWaitsForNothing(t *testing.T) {
	servers := map[string]*networking.Server{
		"HTTP": {Port: &networking.Port{Number: 8081, Name: "http", Protocol: "HTTP"}, Hosts: []string{"*"}},
		"TLS":  {Port: &networking.Port{Number: 8443, Name: "https", Protocol: "HTTPS"}, Hosts: []string{"*"}, Tls: simpleTLS()},
	}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			bothVariants(t, func(t *testing.T, delta bool) { deleteTheOnlyGateway(t, delta, server) })
		})
	}
}

func deleteTheOnlyGateway(t *testing.T, delta bool, server *networking.Server) {
	d := newDrive(t, delta, gatewayNode(t))
	d.set(service("web", 1))
	gateway := &federation.Object{
		Key: tenantKey("Gateway", "only"), ProxyLabels: []string{"istio"},
		Spec: &networking.Gateway{Selector: map[string]string{"istio": "ingress"}, Servers: []*networking.Server{server}},
	}
	d.objects(federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{gateway.Key: gateway}})
	d.start(request{kind: envoy.ClusterType}, request{kind: envoy.ListenerType}, request{kind: envoy.RouteType, names: []string{"http.8081"}})
	if len(d.state.subs[envoy.ListenerType].client.resources()) == 0 {
		t.Fatal("the proxy has no listener of the Gateway")
	}
	d.objects(federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{gateway.Key}})
	d.accept()
	if left := d.state.subs[envoy.ListenerType].client.resources(); len(left) > 0 || d.events[EmptyHeld] > 0 {
		t.Errorf("%d listeners are left; %d sets were held", len(left), d.events[EmptyHeld])
	}
	for kind, sub := range d.state.subs {
		if sub.queue.size() > 0 {
			t.Errorf("%s: %d names wait", kind, sub.queue.size())
		}
	}
}

func gatewayNode(t testing.TB) envoy.Node {
	t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "shop", "LABELS": map[string]any{"istio": "ingress"}})
	if err != nil {
		t.Fatal(err)
	}
	n, err := envoy.ParseNode(&corev3.Node{Id: "router~10.1.0.9~gw-1.shop~shop.svc.cluster.local", Metadata: metadata})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (d *drive) objects(objects federation.Delta[federation.ObjectKey, *federation.Object]) {
	d.writer.Update(federation.Edit{Objects: objects})
	d.state.collect(d.aggregate.Latest(), d.now)
}

// TestR36AnEnvoyLosesItsOnlyGatewayAtOnce: a real Envoy with several listeners and
// hosts, some of which have routes and certificates. Nothing of it waits for a second
// proof, and Envoy has closed the listeners.
func TestR36AnEnvoyLosesItsOnlyGatewayAtOnce(t *testing.T) {
	e := newEdge(t)
	e.rotate("one")
	e.await("the gateway to serve", func() error { _, err := e.ask("shop.example.com"); return err })
	e.await("everything to be accepted", e.inSync)
	e.forget()
	e.operator.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Full: true}})
	e.await("Envoy to remove the listeners", func() error { return e.listeners(0) })
	e.await("everything to be accepted", e.inSync)
	for _, kind := range []envoy.Type{envoy.ListenerType, envoy.ClusterType} {
		if e.first(EmptyHeld, kind) >= 0 {
			t.Errorf("removing the %s waited for a second proof", kind)
		}
	}
	e.await("the gateway to answer nobody", func() error { // its threads close their sockets after the listener is gone
		if _, err := e.dial("shop.example.com"); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
}
