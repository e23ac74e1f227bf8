package conformance

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/bootstrap"
)

// gateways runs an Envoy for each Gateway, and exposes it by a Service as a load balancer would.
type gateways struct {
	*rig
	running map[string]string // addresses by NAMESPACE/NAME of the Gateway
	exposed map[string]bool
}

// sync starts what is missing. Proxies of Gateways that are gone stay: a later case may have
// a Gateway of the name.
func (g *gateways) sync(ctx context.Context) error {
	var all gateway.GatewayList
	if err := g.client.List(ctx, &all); err != nil {
		return err
	}
	for _, gw := range all.Items {
		name := gw.Namespace + "/" + gw.Name
		if string(gw.Spec.GatewayClassName) != class || g.exposed[name] {
			continue
		}
		if g.running[name] == "" {
			address, err := g.start(gw.Namespace, gw.Name)
			if err != nil {
				return err
			}
			g.running[name] = address
		}
		if err := g.expose(ctx, gw.Namespace, gw.Name); err != nil {
			return err
		}
		g.exposed[name] = true
	}
	return nil
}

// expose writes the Service of a Gateway, whose address is that of the proxy. It is the Gateway's
// once it has the address: before, the hub would write its DNS name, which nobody resolves here.
func (g *gateways) expose(ctx context.Context, namespace, name string) error {
	o := &core.Service{
		ObjectMeta: v1.ObjectMeta{Name: name + "-" + class, Namespace: namespace},
		Spec:       core.ServiceSpec{Type: core.ServiceTypeLoadBalancer, Ports: []core.ServicePort{{Name: "tcp", Port: 65000}}},
	}
	if err := g.client.Create(ctx, o); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	o.Status.LoadBalancer.Ingress = []core.LoadBalancerIngress{{IP: g.running[namespace+"/"+name]}}
	if err := g.client.Status().Update(ctx, o); err != nil {
		return err
	}
	o.Labels = map[string]string{nameLabel: name}
	return g.client.Update(ctx, o)
}

// nameLabel is the label of the proxies of a Gateway, and of their Service.
const nameLabel = "gateway.networking.k8s.io/gateway-name"

// start runs the proxy of a Gateway, and returns its address.
func (g *gateways) start(namespace, name string) (string, error) {
	place := testbed.NewNamespace(g.t, name)
	address := place.Join(g.pods, g.next())
	err := g.proxy(place, bootstrap.Options{
		Kind: bootstrap.Gateway, Name: name, Namespace: namespace, Addresses: []netip.Addr{address}, Labels: map[string]string{nameLabel: name},
	})
	return address.String(), err
}

// proxy runs an Envoy of the hub.
func (r *rig) proxy(place *testbed.Namespace, o bootstrap.Options) error {
	o.Cluster, o.Hub = "c1", bootstrap.Endpoint{Path: strings.TrimPrefix(r.hub.XDS, "unix:")}
	built, err := bootstrap.Build(o)
	if err != nil {
		return fmt.Errorf("the proxy of %s/%s: %w", o.Namespace, o.Name, err)
	}
	config, err := bootstrap.YAML(built)
	if err != nil {
		return err
	}
	testbed.StartEnvoy(r.t, testbed.EnvoyOptions{Name: o.Name, Namespace: place, Config: config})
	return nil
}
