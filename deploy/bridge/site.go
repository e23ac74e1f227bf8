package bridge

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// plan is where a site is.
type plan struct{ cluster, network, prefix string }

// n1 and n2 have the same addresses.
var plans = []plan{{"c1", "n1", "10.1.0"}, {"c2", "n2", "10.1.0"}, {"dc1", "n3", "10.3.0"}}

// Site is one network: a pod with a caller, a pod with a workload, and the
// gateway, which alone is also in the network between.
type Site struct {
	Cluster, Network string
	Caller           *Pod
	Workload         *Pod
	Gateway          *Gateway
	lan              *testbed.Network
}

// Pod is a workload with the sidecar that captures its traffic.
type Pod struct {
	*testbed.Namespace
	Name, Address string
	Envoy         *testbed.Envoy
}

// Gateway is a router in sni-dnat mode.
type Gateway struct {
	Pod
	Address string        // in the network between
	Wire    *testbed.Wire // what it sees
}

func newSite(t testing.TB, wan *testbed.Network, p plan, number int) *Site {
	t.Helper()
	s := &Site{Cluster: p.cluster, Network: p.network, lan: testbed.NewNetwork(t, p.network, p.prefix+".0/24")}
	s.Gateway = &Gateway{Pod: newPod(t, s, "gateway", p.prefix+".2"), Address: fmt.Sprintf("192.0.2.1%d", number)}
	s.Gateway.Join(wan, s.Gateway.Address)
	// Pods leave the network by the gateway's machine, as by any router that
	// translates addresses: they reach what is in the network between, and nobody
	// there reaches them.
	s.Gateway.Forward()
	s.Gateway.Exec("iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "eth1", "-j", "MASQUERADE")
	s.Gateway.Wire = s.Gateway.Sniff()
	caller, workload := newPod(t, s, "caller", p.prefix+".11"), newPod(t, s, "web", p.prefix+".21")
	s.Caller, s.Workload = &caller, &workload
	for _, pod := range []*Pod{s.Caller, s.Workload} {
		pod.Exec("ip", "route", "replace", "default", "via", p.prefix+".2")
	}
	testbed.StartEcho(t, testbed.EchoOptions{Name: s.Cluster, Namespace: s.Workload.Namespace, HTTP: []int{Port}})
	return s
}

func newPod(t testing.TB, s *Site, name, address string) Pod {
	t.Helper()
	pod := Pod{Namespace: testbed.NewNamespace(t, name+"-"+s.Cluster), Name: name, Address: address}
	pod.Join(s.lan, address)
	return pod
}

func (s *Site) startProxies(t testing.TB, hub *Hub) {
	t.Helper()
	s.Gateway.start(t, hub, s, "router")
	for _, pod := range []*Pod{s.Workload, s.Caller} {
		pod.start(t, hub, s, "sidecar")
		pod.Capture(testbed.ProxyUID)
	}
}

func (p *Pod) start(t testing.TB, hub *Hub, s *Site, nodeType string) {
	t.Helper()
	p.Envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: p.Name + "-" + s.Cluster, Namespace: p.Namespace, Config: hub.bootstrap(p, s, nodeType),
	})
	p.Envoy.WaitReady(30 * time.Second)
}

// Answer is who answered a request, and what it was told of the caller.
type Answer struct {
	Cluster string
	Caller  string // the SPIFFE ID that the certificate proved
}

// Ask sends a request of the site's caller to a service and returns who answered.
func (s *Site) Ask(host, path string) (Answer, error) {
	response := s.Caller.Get("http://"+net.JoinHostPort(anywhere, strconv.Itoa(Port))+path, "Host", host)
	if response.Err != nil {
		return Answer{}, response.Err
	}
	if response.Status != 200 {
		return Answer{}, fmt.Errorf("status %d: %.200s", response.Status, response.Body)
	}
	var echo testbed.EchoAnswer
	if err := json.Unmarshal(response.Body, &echo); err != nil {
		return Answer{}, err
	}
	return Answer{Cluster: echo.Name, Caller: echo.Header.Get("X-Forwarded-Client-Cert")}, nil
}

// anywhere is where callers send requests: the sidecar takes them, and decides by
// the host.
const anywhere = "198.51.100.1"

// Identity is the SPIFFE ID of the caller, without the rest of the header.
func (a Answer) Identity() string {
	for part := range strings.SplitSeq(a.Caller, ";") {
		if id, ok := strings.CutPrefix(part, "URI="); ok {
			return id
		}
	}
	return "nobody"
}
