package pods_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

var (
	everyone = node.Facet{Scope: node.ScopePublic}
	redis    = facettest.Port(6379, federation.TCP)
)

// pod is one of the workload shop/NAME that takes mutual TLS.
func pod(name, address string, change ...func(*federation.Endpoint)) federation.Endpoint {
	e := facettest.Endpoint(address, redis)
	e.Workload, e.TLSMode = "shop/"+name, federation.MutualTLS
	for _, set := range change {
		set(&e)
	}
	return e
}

func inCluster(id federation.ClusterID) federation.ShardKey {
	return federation.ShardKey{Cluster: id, Provider: federation.Kubernetes}
}

// headless is the service db.shop with the port redis and one of c1 for datagrams; c2 has redis under another name.
func headless(endpoints ...federation.ShardEndpoints) *federation.Service {
	declared := func(of federation.ShardKey, name string) federation.PortDeclaration {
		return federation.PortDeclaration{Shard: of, Name: name}
	}
	return &federation.Service{
		Key:        federation.ServiceKey{Hostname: "db.shop", Namespace: "shop"},
		Resolution: federation.Passthrough,
		Ports: []federation.ServicePort{
			{Name: redis.Name, Number: 6379, Protocol: redis.Protocol, Declared: []federation.PortDeclaration{
				declared(inCluster("c1"), redis.Name), declared(inCluster("c2"), "cache"),
			}},
			{Name: "metrics", Number: 9090, Protocol: federation.HTTP, Declared: []federation.PortDeclaration{declared(inCluster("c1"), "metrics")}},
			{Name: "gossip", Number: 7946, Protocol: federation.UDP, Declared: []federation.PortDeclaration{
				declared(inCluster("c1"), "gossip"), declared(inCluster("c2"), "gossip"),
			}},
		},
		Endpoints: endpoints,
	}
}

func of(cluster federation.ClusterID, endpoints ...federation.Endpoint) federation.ShardEndpoints {
	return federation.ShardEndpoints{Shard: inCluster(cluster), Endpoints: endpoints}
}

// TestHostsOfPods: POD.CLUSTER.HOST is a host of each pod that can be reached from another network.
func TestHostsOfPods(t *testing.T) {
	called := func(hostname string) func(*federation.Endpoint) {
		return func(e *federation.Endpoint) { e.Hostname = hostname }
	}
	for name, test := range map[string]struct {
		endpoints []federation.ShardEndpoints
		want      string // HOST=ADDRESS
	}{
		"the name of the workload": {[]federation.ShardEndpoints{of("c1", pod("db-0", "10.0.0.1"))}, "db-0.c1.db.shop=10.0.0.1"},
		"its hostname":             {[]federation.ShardEndpoints{of("c1", pod("db-0", "10.0.0.1", called("first")))}, "first.c1.db.shop=10.0.0.1"},
		"in lower case":            {[]federation.ShardEndpoints{of("C1", pod("db-0", "10.0.0.1", called("First")))}, "first.c1.db.shop=10.0.0.1"},
		"no name":                  {[]federation.ShardEndpoints{of("c1", pod("db-0", "10.0.0.1", func(e *federation.Endpoint) { e.Workload = "" }))}, ""},
		"plain text":               {[]federation.ShardEndpoints{of("c1", pod("db-0", "10.0.0.1", func(e *federation.Endpoint) { e.TLSMode = "" }))}, ""},
		"a name for an address":    {[]federation.ShardEndpoints{of("c1", pod("db-0", "db.example.com"))}, ""},
		"two clusters": {
			[]federation.ShardEndpoints{of("c1", pod("db-0", "10.0.0.1")), of("c2", pod("db-0", "10.2.0.1"))},
			"db-0.c1.db.shop=10.0.0.1 db-0.c2.db.shop=10.2.0.1",
		},
		"a pod of another cluster than its shard": {
			[]federation.ShardEndpoints{of("c1", pod("db-0", "10.0.0.1", func(e *federation.Endpoint) { e.Cluster = "c3" }))}, "db-0.c3.db.shop=10.0.0.1",
		},
		"a host twice": {
			[]federation.ShardEndpoints{of("c1", pod("db-0", "10.0.0.1"), pod("db-0", "10.0.0.2"), pod("db-1", "10.0.0.3"))},
			"db-0.c1.db.shop=10.0.0.1 db-1.c1.db.shop=10.0.0.3",
		},
		"too long with a subset":                         {[]federation.ShardEndpoints{of("c1", pod(strings.Repeat("x", resource.MaxServerName-63), "10.0.0.1"))}, ""},
		"what names of servers have between their parts": {[]federation.ShardEndpoints{of("c1", pod("db_", "10.0.0.1"))}, ""},
		"not a domain":                                   {[]federation.ShardEndpoints{of("c1", pod("db 0", "10.0.0.1"))}, ""},
	} {
		var got []string
		for _, p := range pods.Of(headless(test.endpoints...)) {
			got = append(got, string(p.Service.Key.Hostname)+"="+p.Service.Endpoints[0].Endpoints[0].Address.String())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: the pods are %q, want %q", name, got, test.want)
		}
	}
}

// TestPodsAreServices: a pod is a service with one endpoint, the TCP ports of its cluster as bytes, and its account alone.
func TestPodsAreServices(t *testing.T) {
	account := func(e *federation.Endpoint) { e.ServiceAccount = "spiffe://cluster.local/ns/shop/sa/db" }
	whole := headless(of("c1", pod("db-0", "10.0.0.1", account)), of("c2", pod("db-0", "10.2.0.1")))
	whole.Peers = []federation.PeerAccounts{{Cluster: "c1", Accounts: []string{"spiffe://cluster.local/ns/shop/sa/other"}}}
	for i, want := range []string{
		"db-0.c1.db.shop in shop of c1: 6379/TCP 9090/TCP [spiffe://cluster.local/ns/shop/sa/db] outbound_.6379_._.db-0.c1.db.shop outbound_.9090_._.db-0.c1.db.shop",
		"db-0.c2.db.shop in shop of c2: 6379/TCP [] outbound_.6379_._.db-0.c2.db.shop",
	} {
		p := pods.Of(whole)[i]
		ports := []string{}
		for _, port := range p.Service.Ports {
			ports = append(ports, fmt.Sprintf("%d/%s", port.Number, port.Protocol))
		}
		got := fmt.Sprintf("%s in %s of %s: %s %v %s", p.Service.Key.Hostname, p.Service.Key.Namespace, p.Cluster, strings.Join(ports, " "),
			p.Service.Peers[0].Accounts, strings.Join(p.ServerNames(), " "))
		if got != want {
			t.Errorf("the pod is\n%s\nwant\n%s", got, want)
		}
		if len(p.Service.Peers) != 1 || p.Service.Peers[0].Cluster != p.Cluster || p.Service.Resolution != federation.ClientSideLB || !p.VIP().Is4() {
			t.Errorf("the service of %s has the peers %v, the resolution %s and the VIP %s", p.Name, p.Service.Peers, p.Service.Resolution, p.VIP())
		}
	}
	if whole.Ports[1].Protocol != federation.HTTP || len(whole.Peers[0].Accounts) != 1 || whole.Key.Hostname != "db.shop" {
		t.Errorf("the headless service was changed: %v", whole)
	}
}

// TestListenersAtPods: connections to a pod are captured at its own address and port.
func TestListenersAtPods(t *testing.T) {
	at := func(number uint16) func(*federation.Endpoint) {
		return func(e *federation.Endpoint) { e.Ports[0].Number = number }
	}
	ipv6 := node.Facet{Scope: node.ScopePublic, IPv6: true}
	balanced, external := headless(of("c1", pod("db-0", "10.0.0.1"))), headless(of("c1", pod("db-0", "10.0.0.1")))
	balanced.Resolution, external.MeshExternal = federation.ClientSideLB, true
	for name, test := range map[string]struct {
		service *federation.Service
		facet   node.Facet
		want    string
	}{
		"a pod":                       {headless(of("c1", pod("db-0", "10.0.0.1"))), everyone, "10.0.0.1_6379"},
		"its own port":                {headless(of("c1", pod("db-0", "10.0.0.1", at(16379)))), everyone, "10.0.0.1_16379"},
		"without sidecars, too":       {headless(of("c1", facettest.Endpoint("10.0.0.1", redis))), everyone, "10.0.0.1_6379"},
		"every pod":                   {headless(of("c1", pod("db-0", "10.0.0.1"), pod("db-1", "10.0.0.2"))), everyone, "10.0.0.1_6379 10.0.0.2_6379"},
		"a pod without the port":      {headless(of("c1", facettest.Endpoint("10.0.0.1"))), everyone, ""},
		"another name of the port":    {headless(of("c2", pod("db-0", "10.2.0.1"))), everyone, ""},
		"a cluster without the port":  {headless(of("c3", pod("db-0", "10.3.0.1"))), everyone, ""},
		"IPv6, without it":            {headless(of("c1", pod("db-0", "2001:db8::1"))), everyone, ""},
		"IPv6":                        {headless(of("c1", pod("db-0", "2001:db8::1"))), ipv6, "2001:db8::1_6379"},
		"the loopback":                {headless(of("c1", pod("db-0", "127.0.0.1"))), everyone, ""},
		"no address":                  {headless(of("c1", pod("db-0", "0.0.0.0"))), everyone, ""},
		"an address of one interface": {headless(of("c1", pod("db-0", "fe80::1%eth0"))), ipv6, ""},
		"a name":                      {headless(of("c1", pod("db-0", "db.example.com"))), everyone, ""},
		"not headless":                {balanced, everyone, ""},
		"outside the mesh":            {external, everyone, ""},
	} {
		got := pods.AppendListeners([]string{"before"}, test.facet, service.ServedPort{Service: test.service, Port: test.service.Ports[0]})
		if strings.TrimSpace("before "+test.want) != strings.Join(got, " ") {
			t.Errorf("%s: the listeners are %q, want %q behind those before", name, got, test.want)
		}
	}
}

// TestServicesAtPods: whose pod the proxy dials at an address, and which services come second.
func TestServicesAtPods(t *testing.T) {
	in := func(cluster federation.ClusterID, name string, port federation.Port, address string, change ...func(*federation.Shard)) facettest.Service {
		shard := federation.Shard{
			Ports: []federation.Port{port}, Resolution: federation.Passthrough, Endpoints: []federation.Endpoint{facettest.Endpoint(address, port)},
		}
		for _, set := range change {
			set(&shard)
		}
		return facettest.Service{Name: name, Cluster: cluster, Shard: shard}
	}
	hidden := func(s *federation.Shard) { s.ExportTo = []string{"."} }
	network := func(id federation.NetworkID) func(*federation.Shard) {
		return func(s *federation.Shard) { s.Endpoints[0].Network = id }
	}
	networks := []*federation.Object{
		{Key: federation.NetworkKind.Key("", "open"), Spec: &federation.NetworkObject{}},
		{Key: federation.NetworkKind.Key("", "gated"), Spec: &federation.NetworkObject{Gateways: []federation.NetworkGateway{{Address: "192.0.2.1"}}}},
	}
	imports := func(egress string) node.Facet {
		return node.Facet{Scope: node.ScopeImported, Namespace: "bank", Egress: egress}
	}
	db := in("c1", "shop/db.shop", redis, "10.0.0.1")
	for name, test := range map[string]struct {
		services []facettest.Service
		facet    node.Facet
		at       string // empty: 10.0.0.1:6379
		want     string
		second   string
	}{
		"a pod":                    {services: []facettest.Service{db}, facet: everyone, want: "db.shop:6379"},
		"another address":          {services: []facettest.Service{db}, facet: everyone, at: "10.0.0.2:6379"},
		"another port":             {services: []facettest.Service{db}, facet: everyone, at: "10.0.0.1:6380"},
		"requests":                 {services: []facettest.Service{in("c1", "shop/web.shop", facettest.Port(6379, federation.HTTP), "10.0.0.1")}, facet: everyone},
		"datagrams":                {services: []facettest.Service{in("c1", "shop/dns.shop", facettest.Port(6379, federation.UDP), "10.0.0.1")}, facet: everyone},
		"not headless":             {services: []facettest.Service{in("c1", "shop/db.shop", redis, "10.0.0.1", func(s *federation.Shard) { s.Resolution = federation.ClientSideLB })}, facet: everyone},
		"hidden":                   {services: []facettest.Service{in("c1", "shop/db.shop", redis, "10.0.0.1", hidden)}, facet: everyone},
		"hidden, in its namespace": {services: []facettest.Service{in("c1", "shop/db.shop", redis, "10.0.0.1", hidden)}, facet: node.Facet{Scope: node.ScopePrivate, Namespace: "shop"}, want: "db.shop:6379"},
		"imported":                 {services: []facettest.Service{db}, facet: imports("shop/*"), want: "db.shop:6379"},
		"not imported":             {services: []facettest.Service{db}, facet: imports("till/*")},
		"imported at another port": {services: []facettest.Service{db}, facet: imports("80:shop/*;till/*")},
		"in an open network":       {services: []facettest.Service{in("c1", "shop/db.shop", redis, "10.0.0.1", network("open"))}, facet: everyone, want: "db.shop:6379"},
		"behind a gateway":         {services: []facettest.Service{in("c1", "shop/db.shop", redis, "10.0.0.1", network("gated"))}, facet: everyone},
		"in the proxy's own network": {
			services: []facettest.Service{in("c1", "shop/db.shop", redis, "10.0.0.1", network("gated"))},
			facet:    node.Facet{Scope: node.ScopePublic, Network: "gated"}, want: "db.shop:6379",
		},
		"the pod's own port": {
			services: []facettest.Service{in("c1", "shop/db.shop", redis, "10.0.0.1", func(s *federation.Shard) { s.Endpoints[0].Ports[0].Number = 16379 })},
			facet:    everyone, at: "10.0.0.1:16379", want: "db.shop:6379",
		},
		"two services": {
			services: []facettest.Service{db, in("c1", "shop/cache.shop", redis, "10.0.0.1")},
			facet:    everyone, want: "cache.shop:6379", second: "db.shop",
		},
		"that of the proxy's cluster": {
			services: []facettest.Service{db, in("c2", "shop/cache.shop", redis, "10.0.0.1")},
			facet:    node.Facet{Scope: node.ScopePublic, Cluster: "c1"}, want: "db.shop:6379", second: "cache.shop",
		},
		"that of everyone": {
			services: []facettest.Service{db, in("c1", "shop/cache.shop", redis, "10.0.0.1", hidden)},
			facet:    node.Facet{Scope: node.ScopePrivate, Namespace: "shop"}, want: "db.shop:6379", second: "cache.shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := facettest.Mesh{Services: test.services, Objects: networks}.View(t, test.facet)
			at := netip.MustParseAddrPort("10.0.0.1:6379")
			if test.at != "" {
				at = netip.MustParseAddrPort(test.at)
			}
			got := ""
			if p := pods.At(v, at.Addr(), at.Port()); p.Service != nil {
				got = fmt.Sprintf("%s:%d", p.Service.Key.Hostname, p.Port.Number)
			}
			second := ""
			for _, r := range v.Reasons {
				second += string(r.Service.Hostname)
				if r.Code != resource.ReasonVIPTaken || !strings.Contains(r.Message, at.String()) {
					t.Errorf("the reason is %+v", r)
				}
			}
			if got != test.want || second != test.second {
				t.Errorf("at %s there is %q, and %q comes second; want %q and %q", at, got, second, test.want, test.second)
			}
		})
	}
}

// mesh has two clusters with pods of db.shop, a service that only its namespace sees, and one that is not headless.
func mesh(rules ...string) facettest.Mesh {
	shard := func(resolution federation.Resolution, exportTo []string, endpoints ...federation.Endpoint) federation.Shard {
		ports := []federation.Port{redis, facettest.Port(53, federation.UDP)}
		return federation.Shard{Ports: ports, Resolution: resolution, ExportTo: exportTo, Endpoints: endpoints}
	}
	return facettest.Mesh{Rules: rules, Services: []facettest.Service{
		{Name: "shop/db.shop", Cluster: "c1", Shard: shard(federation.Passthrough, nil, pod("db-0", "10.0.0.1"), pod("a.b", "10.0.0.2"))},
		{Name: "shop/db.shop", Cluster: "c2", Shard: shard(federation.Passthrough, nil, pod("db-0", "10.2.0.1"))},
		{Name: "shop/hidden.shop", Cluster: "c1", Shard: shard(federation.Passthrough, []string{"."}, pod("h-0", "10.0.0.3"))},
		{Name: "shop/web.shop", Cluster: "c1", Shard: shard(federation.ClientSideLB, nil, pod("web-0", "10.0.0.4"))},
	}}
}

// TestPodsThatProxiesSee: each pod of a service that the proxy sees is found by its host, and no other.
func TestPodsThatProxiesSee(t *testing.T) {
	const every = "a.b.c1.db.shop db-0.c1.db.shop db-0.c2.db.shop"
	for name, test := range map[string]struct {
		facet       node.Facet
		all, remote string
	}{
		"everyone":       {everyone, every, every},
		"of c1":          {node.Facet{Scope: node.ScopePods, Cluster: "c1"}, every, "db-0.c2.db.shop"},
		"of c2":          {node.Facet{Scope: node.ScopePods, Cluster: "c2"}, every, "a.b.c1.db.shop db-0.c1.db.shop"},
		"of c3":          {node.Facet{Scope: node.ScopePods, Cluster: "c3"}, every, every},
		"of shop":        {node.Facet{Scope: node.ScopePods, Namespace: "shop"}, every + " h-0.c1.hidden.shop", every + " h-0.c1.hidden.shop"},
		"one import":     {node.Facet{Scope: node.ScopePods, Namespace: "bank", Egress: "shop/db.shop"}, every, every},
		"other imports":  {node.Facet{Scope: node.ScopePods, Namespace: "bank", Egress: "shop/web.shop"}, "", ""},
		"passed on":      {node.Facet{Scope: node.ScopePassed, Namespace: "bank"}, every, every},
		"of no services": {node.Facet{Scope: node.ScopeStatic}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := mesh().View(t, test.facet)
			for remote, want := range map[bool]string{false: test.all, true: test.remote} {
				var got []string
				for _, p := range pods.All(v, remote) {
					got = append(got, string(p.Service.Key.Hostname))
				}
				slices.Sort(got)
				if strings.Join(got, " ") != want {
					t.Errorf("remote: %t: the pods are %q, want %q", remote, got, want)
				}
			}
			for _, host := range []federation.Hostname{
				"a.b.c1.db.shop", "db-0.c1.db.shop", "db-0.c2.db.shop", "h-0.c1.hidden.shop", "web-0.c1.web.shop", "db-1.c1.db.shop", "db-0.c3.db.shop",
				"b.c1.db.shop", "c1.db.shop", "db.shop", "shop", "",
			} {
				p, found := pods.Named(v, host)
				if want := slices.Contains(strings.Fields(test.all), string(host)); found != want || found && p.Service.Key.Hostname != host {
					t.Errorf("the pod %q is found: %t, %+v; want %t", host, found, p.Service, want)
				}
			}
		})
	}
}

// TestDestinationsOfPods: a pod is called by its own name, with the policy for its headless service.
func TestDestinationsOfPods(t *testing.T) {
	const random = `{"loadBalancer": {"simple": "RANDOM"}}`
	policy := func(of string) string { return `shop/a db.shop {"trafficPolicy": ` + of + `}` }
	for name, test := range map[string]struct {
		rules  []string
		number uint16
		want   string
	}{
		"a port":                  {nil, 6379, "outbound_.6379_._.db-0.c2.db.shop"},
		"another port":            {nil, 6380, ""},
		"a port for datagrams":    {nil, 53, ""},
		"a policy":                {[]string{policy(random)}, 6379, "outbound_.6379_._.db-0.c2.db.shop RANDOM by a"},
		"a policy of the port":    {[]string{policy(`{"portLevelSettings": [{"port": {"number": 6379}, "loadBalancer": {"simple": "RANDOM"}}]}`)}, 6379, "outbound_.6379_._.db-0.c2.db.shop RANDOM by a"},
		"a policy of another":     {[]string{policy(`{"portLevelSettings": [{"port": {"number": 6380}, "loadBalancer": {"simple": "RANDOM"}}]}`)}, 6379, "outbound_.6379_._.db-0.c2.db.shop by a"},
		"a policy for other pods": {[]string{`shop/a web.shop {"trafficPolicy": ` + random + `}`}, 6379, "outbound_.6379_._.db-0.c2.db.shop"},
	} {
		t.Run(name, func(t *testing.T) {
			v := mesh(test.rules...).View(t, everyone)
			p, found := pods.Named(v, "db-0.c2.db.shop")
			if !found {
				t.Fatal("there is no pod")
			}
			var got []string
			d, ok := pods.Destination(v, p, test.number, "cluster")
			if ok {
				got = append(got, d.SNI)
			}
			if lb := d.Policy.GetLoadBalancer(); lb != nil {
				got = append(got, lb.GetSimple().String())
			}
			for _, rule := range d.Rules {
				got = append(got, "by "+rule.Key.Name)
			}
			if strings.Join(got, " ") != test.want || ok && (d.Name != "cluster" || d.Service != p.Service || d.Port.Number != test.number) {
				t.Errorf("the destination is %q, as %q, want %q", got, d.Name, test.want)
			}
		})
	}
}
