package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// Two datacenters are called dc1. Of web, the tag live is carried by all instances in
// one of them, by none in the other, and by one of two in dc2.
var consulInstances = []struct {
	name, cluster, address string
	tags                   []string
}{
	{"a-1", "a", "10.79.0.21", []string{"live"}},
	{"b-1", "b", "10.79.0.22", nil},
	{"c-1", "c", "10.79.0.23", []string{"live"}},
	{"c-2", "c", "10.79.0.24", nil},
}

// TestR84NamesOfConsulsDNSLeadToTheirInstances sends requests to the names that
// Consul's DNS has for services, as a captured workload resolves them.
func TestR84NamesOfConsulsDNSLeadToTheirInstances(t *testing.T) {
	t.Parallel()
	w := &fixture{t: t, mesh: testbed.NewNetwork(t, "mesh", "10.79.0.0/24")}
	consuls := startConsuls(w)
	c := w.startNamesClient("10.79.0.9")
	for name, want := range map[string]string{
		"web.service.consul":          "a-1 b-1 c-1 c-2",
		"web.service.dc1.consul":      "a-1 b-1",
		"web.service.dc2.consul":      "c-1 c-2",
		"live.web.service.consul":     "a-1 c-1",
		"live.web.service.dc1.consul": "a-1",
		"live.web.service.dc2.consul": "c-1",
	} {
		c.awaitNamed(t, name, want)
	}
	for name, want := range map[string]string{"db.service.dc2.consul": "c-1", "primary.db.service.consul": "a-1"} {
		testbed.WaitFor(t, patience, "TCP to "+name, func() error {
			got, err := c.line(t, name, 9000)
			if err == nil && got != want {
				err = fmt.Errorf("%s answers, want %s", got, want)
			}
			return err
		})
	}
	for _, id := range []string{"c-1", "c-2"} {
		consuls["c"].Put("/v1/catalog/deregister", map[string]any{"Node": "vm", "ServiceID": "web-" + id})
	}
	c.awaitNamed(t, "live.web.service.consul", "a-1")
	c.awaitNamed(t, "web.service.dc1.consul", "a-1 b-1")
	c.awaitNamed(t, "web.service.consul", "a-1 b-1")
}

// startConsuls runs the datacenters, their instances and the hub.
func startConsuls(w *fixture) map[string]*testbed.Consul {
	consuls, config := map[string]*testbed.Consul{}, "clusters:\n"
	for cluster, datacenter := range map[string]string{"a": "dc1", "b": "dc1", "c": "dc2"} {
		consuls[cluster] = testbed.StartConsul(w.t, testbed.ConsulOptions{Name: "consul-" + cluster, Datacenter: datacenter})
		config += fmt.Sprintf("- {id: %s, provider: Consul, network: n1, consul: {address: %q}}\n", cluster, consuls[cluster].URL)
	}
	for _, in := range consulInstances {
		pod := testbed.NewNamespace(w.t, in.name)
		pod.Join(w.mesh, in.address)
		testbed.StartEcho(w.t, testbed.EchoOptions{Name: in.name, Namespace: pod, HTTP: []int{8080}, TCP: []int{9000}})
		registerAt(consuls[in.cluster], "web-"+in.name, "web", in.address, 8080, in.tags...)
	}
	registerAt(consuls["a"], "db-a-1", "db", "10.79.0.21", 9000, "protocol=tcp", "primary")
	registerAt(consuls["c"], "db-c-1", "db", "10.79.0.23", 9000, "protocol=tcp")
	w.hub = startHub(w.t, hubOptions{config: config})
	return consuls
}

func registerAt(consul *testbed.Consul, id, name, address string, port int, tags ...string) {
	consul.Put("/v1/catalog/register", map[string]any{
		"Node": "vm", "Address": "10.79.0.20",
		"Service": map[string]any{"ID": id, "Service": name, "Address": address, "Port": port, "Tags": tags},
	})
}

// startNamesClient is a workload whose DNS requests the sidecar answers.
func (w *fixture) startNamesClient(address string) *client {
	c := &client{Namespace: testbed.NewNamespace(w.t, "caller")}
	c.Join(w.mesh, address)
	config := bootstrap("caller", address, "DELTA_GRPC", strings.TrimPrefix(w.hub.XDS, "unix:"))
	config = bytes.Replace(config, []byte("metadata: {"), []byte("metadata: {DNS_CAPTURE: true, "), 1)
	c.envoy = testbed.StartEnvoy(w.t, testbed.EnvoyOptions{Name: "caller", Namespace: c.Namespace, Config: config})
	c.envoy.WaitReady(patience)
	c.Capture(testbed.ProxyUID)
	c.CaptureDNS(testbed.ProxyUID)
	return c
}

// resolve asks a DNS server that does not exist for the name, as a workload would.
func (c *client) resolve(name string) (string, error) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return c.DialContext(ctx, network, "10.79.0.53:53")
	}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := resolver.LookupNetIP(ctx, "ip4", name+".")
	if err != nil {
		return "", err
	}
	return found[0].String(), nil
}

// awaitNamed waits until requests to the name are answered by these instances alone.
func (c *client) awaitNamed(t *testing.T, name, want string) {
	t.Helper()
	c.awaitNamedAt(t, name, "8080", want)
}

// awaitNamedAt is awaitNamed for a port.
func (c *client) awaitNamedAt(t *testing.T, name, port, want string) {
	t.Helper()
	testbed.WaitFor(t, patience, name+" to lead to "+want, func() error {
		address, err := c.resolve(name)
		if err != nil {
			return err
		}
		answered := map[string]bool{}
		for range 24 {
			answer := c.Get("http://"+address+":"+port+"/", "Host", name+":"+port)
			if answer.Err != nil || answer.Status != 200 {
				return fmt.Errorf("status %d: %w", answer.Status, answer.Err)
			}
			answered[answer.Echo(t).Name] = true
		}
		if got := strings.Join(slices.Sorted(maps.Keys(answered)), " "); got != want {
			return fmt.Errorf("%s answer", got)
		}
		return nil
	})
}

// line returns who answers a line over TCP.
func (c *client) line(t *testing.T, name string, port int) (string, error) {
	address, err := c.resolve(name)
	if err != nil {
		return "", err
	}
	connection, err := c.DialContext(t.Context(), "tcp", fmt.Sprintf("%s:%d", address, port))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	fmt.Fprintln(connection, "hello")
	answer := make([]byte, 64)
	n, err := connection.Read(answer)
	who, _, _ := strings.Cut(string(answer[:n]), " ")
	return who, err
}
