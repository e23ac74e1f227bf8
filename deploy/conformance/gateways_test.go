package conformance

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/bootstrap"
)

// gateways runs an Envoy for each Gateway.
type gateways struct {
	*rig
	running map[string]string // addresses by NAMESPACE/NAME of the Gateway
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
		if string(gw.Spec.GatewayClassName) != class || g.running[name] != "" {
			continue
		}
		address, err := g.start(gw.Namespace, gw.Name)
		if err != nil {
			return err
		}
		g.running[name] = address
	}
	return nil
}

// start runs the proxy of a Gateway, and returns its address.
func (g *gateways) start(namespace, name string) (string, error) {
	place := testbed.NewNamespace(g.t, name)
	address := place.Join(g.pods, g.next())
	built, err := bootstrap.Build(bootstrap.Options{
		Kind: bootstrap.Gateway, Name: name, Namespace: namespace, Cluster: "c1", Addresses: []netip.Addr{address},
		Labels: map[string]string{"gateway.networking.k8s.io/gateway-name": name},
		Hub:    bootstrap.Endpoint{Path: strings.TrimPrefix(g.hub.XDS, "unix:")},
	})
	if err != nil {
		return "", fmt.Errorf("the proxy of %s/%s: %w", namespace, name, err)
	}
	config, err := bootstrap.YAML(built)
	if err != nil {
		return "", err
	}
	testbed.StartEnvoy(g.t, testbed.EnvoyOptions{Name: name, Namespace: place, Config: config})
	return address.String(), nil
}
