package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

// portNamed is a named port of Consul 1.22.
func portNamed(name string, number int, isDefault bool) map[string]any {
	return map[string]any{"Name": name, "Port": number, "Default": isDefault}
}

// servedPorts is what GraphQL reports about a service's ports, a line for the service and
// for each endpoint.
func (h *hubUnderTest) servedPorts(hostname string) (string, error) {
	type port struct {
		Name     string
		Number   int
		Protocol string
	}
	var answer struct {
		Service *struct {
			Ports     []port
			Endpoints struct {
				Nodes []struct {
					Address string
					Ports   []port
				}
			}
		}
	}
	err := h.query(fmt.Sprintf(`{ service(hostname: %q) { ports {name number protocol} endpoints {nodes {address ports {name number}}} } }`,
		hostname), &answer)
	if err != nil || answer.Service == nil {
		return "", errors.Join(err, errors.New("there is no such service"))
	}
	lines := []string{fmt.Sprint(answer.Service.Ports)}
	for _, e := range answer.Service.Endpoints.Nodes {
		lines = append(lines, fmt.Sprint(e.Address, " ", e.Ports))
	}
	return strings.Join(lines, "\n"), nil
}

// connectSidecar opens a delta stream as the sidecar of web-1; end closes it.
func (h *hubUnderTest) connectSidecar(ctx context.Context) (client *xdstest.Client, end func(), err error) {
	conn, err := grpc.NewClient("unix:"+filepath.Join(h.dir, "xds"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	node := &corev3.Node{Id: "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local"}
	client, err = xdstest.Open(ctx, conn, xdstest.Options{Delta: true, Node: node})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return client, func() { client.Close(); conn.Close() }, nil
}

// routesTo asks as a sidecar for the routes of the ports and returns those that have
// the text, by port.
func (h *hubUnderTest) routesTo(t *testing.T, texts map[string]string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client, end, err := h.connectSidecar(ctx)
	if err != nil {
		return err
	}
	defer end()
	left := maps.Clone(texts)
	if err := client.Send(xdstest.Request{Type: xdstest.RDS, Names: []string{"8080", "8081", "9090"}}); err != nil {
		return err
	}
	for len(left) > 0 {
		r, err := client.Receive(ctx)
		if err != nil {
			return fmt.Errorf("%w; there is no route of %v", err, left)
		}
		for name, res := range r.Resources {
			if strings.Contains(string(res.GetValue()), left[name]) {
				delete(left, name)
			}
		}
	}
	return nil
}

// TestR84NamedPortsOfARealConsul: instances that were registered with named ports, one
// at the catalog and one at an agent, arrive with names, protocols and routes, and
// follow a change.
func TestR84NamedPortsOfARealConsul(t *testing.T) {
	t.Parallel()
	consul := testbed.StartConsul(t, testbed.ConsulOptions{})
	ports := []any{portNamed("metrics", 9090, false), portNamed("grpc-api", 8080, true)}
	consul.Put("/v1/catalog/register", map[string]any{"Node": "vm", "Address": "10.20.30.1", "Service": map[string]any{
		"ID": "api-1", "Service": "api", "Address": "10.0.0.1", "Ports": ports,
	}})
	agent := func(ports ...any) {
		consul.Put("/v1/agent/service/register", map[string]any{"ID": "api-2", "Name": "api", "Address": "10.0.0.2", "Ports": ports})
	}
	agent(ports...)
	h := startHub(t)
	if got := h.ask(t, "attachCluster", map[string]any{
		"clusterID": "dc1",
		"consul":    map[string]any{"address": consul.URL},
	}); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitPhase(t, "dc1", "READY")
	want := func(what, want string, routes map[string]string) {
		t.Helper()
		h.await(t, what, func() error {
			got, err := h.servedPorts("api.service.consul")
			if err == nil && got != want {
				err = fmt.Errorf("got  %s\nwant %s", got, want)
			}
			return err
		})
		if err := h.routesTo(t, routes); err != nil {
			t.Error(err)
		}
	}
	want("both instances", "[{grpc-api 8080 GRPC} {metrics 9090 HTTP}]\n"+
		"10.0.0.1 [{grpc-api 8080 } {metrics 9090 }]\n10.0.0.2 [{grpc-api 8080 } {metrics 9090 }]",
		map[string]string{"8080": "outbound|8080||api.service.consul", "9090": "outbound|9090||api.service.consul"})
	agent(portNamed("metrics", 9090, true), portNamed("admin", 8081, false))
	want("the other ports of one", "[{grpc-api 8080 GRPC} {admin 8081 HTTP} {metrics 9090 HTTP}]\n"+
		"10.0.0.1 [{grpc-api 8080 } {metrics 9090 }]\n10.0.0.2 [{admin 8081 } {metrics 9090 }]",
		map[string]string{"8081": "outbound|8081||api.service.consul", "9090": "outbound|9090||api.service.consul"})
}
