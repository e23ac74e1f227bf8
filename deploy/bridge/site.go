package bridge

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// plan is where a site is: the first three numbers of its own addresses, and the
// first of its 50 addresses in the network between.
type plan struct {
	cluster, network, prefix string
	outside                  int
	Shape
}

// n1 and n2 have the same addresses.
var plans = []plan{
	{"c1", "n1", "10.1.0", 50, Shape{}},
	{"c2", "n2", "10.1.0", 100, Shape{}},
	{"dc1", "n3", "10.3.0", 150, Shape{}},
}

func (p plan) shaped(shapes map[string]Shape) plan {
	p.Pods, p.Gateways = max(shapes[p.cluster].Pods, 1), max(shapes[p.cluster].Gateways, 1)
	return p
}

func (p plan) at(number int) string        { return fmt.Sprintf("%s.%d", p.prefix, number) }
func (p plan) outsideAt(number int) string { return fmt.Sprintf("192.0.2.%d", p.outside+number) }

// The numbers of addresses within a site, and outside of it.
const (
	routerNumber, controlNumber, gatewayNumber = 2, 3, 4
	callerNumber, podNumber                    = 11, 21
)

// Site is one network: a control plane, a caller, a workload, and the gateways by
// which others enter.
type Site struct {
	Cluster, Network string
	Caller           *Pod
	Workload         *Pod // all pods of the service: one namespace, an address for each
	Gateways         []*Gateway
	Router           *testbed.Namespace // by it the network's own machines leave it
	Kube             *testbed.Kube      // of c1 and c2
	Consul           *testbed.Consul    // of dc1

	plan    plan
	lan     *testbed.Network
	control *testbed.Namespace
	reader  testbed.TokenOptions // the account with which the hub reads the cluster
}

// Pod is what runs behind one proxy: workloads with a sidecar that captures their
// traffic, or a gateway.
type Pod struct {
	*testbed.Namespace
	Name, Account string
	Addresses     []string
	Envoy         *testbed.Envoy

	namespace string // of the cluster
}

// Gateway is a router in sni-dnat mode.
type Gateway struct {
	Pod
	Outside string // its address in the network between
}

func newSite(t testing.TB, wan *testbed.Network, p plan) *Site {
	t.Helper()
	s := &Site{Cluster: p.cluster, Network: p.network, plan: p, lan: testbed.NewNetwork(t, p.network, p.prefix+".0/24")}
	s.control = testbed.NewNamespace(t, "control-"+p.cluster)
	s.control.Join(wan, p.outsideAt(controlNumber))
	s.control.Join(s.lan, p.at(controlNumber))
	s.route(t, wan)
	for i := range p.Gateways {
		g := &Gateway{Pod: s.newPod(t, "istio-system", fmt.Sprint("gateway-", i), gatewayNumber+i), Outside: p.outsideAt(gatewayNumber + i)}
		g.Account = "gateway"
		g.Join(wan, g.Outside)
		s.Gateways = append(s.Gateways, g)
	}
	caller, workload := s.newPod(t, "shop", "caller", callerNumber), s.newPod(t, "shop", "web", podNumber)
	s.Caller, s.Workload = &caller, &workload
	for _, pod := range []*Pod{s.Caller, s.Workload} {
		pod.Exec("ip", "route", "replace", "default", "via", p.at(routerNumber))
	}
	for i := range p.Pods {
		if i > 0 {
			workload.Addresses = append(workload.Addresses, p.at(podNumber+i))
			workload.AddLocal(p.at(podNumber + i))
		}
		s.echo(t, i)
	}
	return s
}

// route lets the machines of the site leave it, as any router does that
// translates addresses: they reach what is in the network between, and nobody
// there reaches them.
func (s *Site) route(t testing.TB, wan *testbed.Network) {
	t.Helper()
	s.Router = testbed.NewNamespace(t, "router-"+s.Cluster)
	s.Router.Join(s.lan, s.plan.at(routerNumber))
	s.Router.Join(wan, s.Outside())
	s.Router.Forward()
	s.Router.Exec("iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "eth1", "-j", "MASQUERADE")
}

// Outside is the address that requests of the site have in the network between.
// Probes of its gateways have those of the gateways.
func (s *Site) Outside() string { return s.plan.outsideAt(routerNumber) }

func (s *Site) newPod(t testing.TB, namespace, name string, number int) Pod {
	t.Helper()
	pod := Pod{
		Namespace: testbed.NewNamespace(t, name+"-"+s.Cluster), namespace: namespace,
		Name: name, Account: name, Addresses: []string{s.plan.at(number)},
	}
	pod.Join(s.lan, pod.Addresses[0])
	return pod
}

// pods are those of the control plane, by name and address.
func (s *Site) pods() map[string]string {
	all := map[string]string{s.Caller.Name: s.Caller.Addresses[0]}
	for i, address := range s.Workload.Addresses {
		all[podName(i)] = address
	}
	return all
}

func podName(i int) string { return fmt.Sprint("web-", i) }

func (s *Site) proxies() []*Pod {
	all := []*Pod{s.Workload, s.Caller}
	for _, g := range s.Gateways {
		all = append(all, &g.Pod)
	}
	return all
}
