package service_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if !strings.Contains(text, "/") {
			addr := netip.MustParseAddr(text)
			text = fmt.Sprintf("%s/%d", addr, addr.BitLen())
		}
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

var everyone = node.Facet{Scope: node.ScopePublic}

// TestAddresses: a proxy of a cluster catches connections to the cluster's own addresses of the service, else to all.
func TestAddresses(t *testing.T) {
	http := []federation.Port{facettest.Port(80, federation.HTTP)}
	in := func(cluster federation.ClusterID, addresses ...string) facettest.Service {
		return facettest.Service{Name: "shop/web.example.com", Cluster: cluster, Shard: federation.Shard{Ports: http, VIPs: prefixes(addresses...)}}
	}
	declared := in("", "10.0.0.1")
	declared.Provider = federation.External
	headless := in("c1", "10.0.0.1")
	headless.Resolution = federation.Passthrough
	for name, test := range map[string]struct {
		services []facettest.Service
		facet    node.Facet
		vips     string
		ranges   string
	}{
		"its own":                {[]facettest.Service{in("c1", "10.0.0.1"), in("c2", "10.2.0.1")}, node.Facet{Cluster: "c1"}, "10.0.0.1", ""},
		"others'":                {[]facettest.Service{in("c1", "10.0.0.1"), in("c2", "10.2.0.1")}, node.Facet{Cluster: "c3"}, "10.0.0.1 10.2.0.1", ""},
		"of no cluster":          {[]facettest.Service{in("c1", "10.0.0.1"), in("c2", "10.0.0.1")}, node.Facet{}, "10.0.0.1", ""},
		"its own has none":       {[]facettest.Service{in("c1"), in("c2", "10.2.0.1")}, node.Facet{Cluster: "c1"}, "", ""},
		"IPv6, without it":       {[]facettest.Service{in("c1", "10.0.0.1", "2001:db8::1")}, node.Facet{Cluster: "c1"}, "10.0.0.1", ""},
		"IPv6":                   {[]facettest.Service{in("c1", "10.0.0.1", "2001:db8::1")}, node.Facet{Cluster: "c1", IPv6: true}, "10.0.0.1 2001:db8::1", ""},
		"an address in IPv6":     {[]facettest.Service{in("c1", "::ffff:10.0.0.1")}, node.Facet{Cluster: "c1"}, "10.0.0.1", ""},
		"no address":             {[]facettest.Service{in("c1", "0.0.0.0")}, node.Facet{Cluster: "c1"}, "", ""},
		"blocks":                 {[]facettest.Service{in("c1", "10.0.0.1", "10.1.2.3/16", "10.1.0.0/16", "2001:db8::/32")}, node.Facet{Cluster: "c1"}, "10.0.0.1", "10.1.0.0/16"},
		"blocks of IPv6":         {[]facettest.Service{in("c1", "2001:db8::/32")}, node.Facet{Cluster: "c1", IPv6: true}, "", "2001:db8::/32"},
		"a headless service":     {[]facettest.Service{headless}, node.Facet{Cluster: "c1"}, "", ""},
		"of a ServiceEntry":      {[]facettest.Service{declared}, node.Facet{Cluster: "c1"}, "10.0.0.1", ""},
		"blocks of other ones'":  {[]facettest.Service{in("c1", "10.1.0.0/16"), in("c2", "10.2.0.0/16")}, node.Facet{Cluster: "c3"}, "", "10.1.0.0/16 10.2.0.0/16"},
		"without DNS capture":    {[]facettest.Service{in("c1", "240.240.0.1")}, node.Facet{Cluster: "c1"}, "", ""},
		"allocated, DNS capture": {[]facettest.Service{in("c1", "240.240.0.1")}, node.Facet{Cluster: "c1", Automatic: true}, "240.240.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := facettest.Mesh{Services: test.services}.View(t, test.facet)
			s, ok := v.Reader.Spec(federation.ServiceKey{Hostname: "web.example.com", Namespace: "shop"})
			if !ok {
				t.Fatal("there is no service")
			}
			if got := joined(service.ListenerVIPs(s, test.facet)); got != test.vips {
				t.Errorf("connections to %q are caught, want %q", got, test.vips)
			}
			ranges := service.RangesOf(s, test.facet)
			if got := joined(ranges); got != test.ranges || len(ranges) > 0 && !service.HasRanges(s) {
				t.Errorf("connections into %q are caught, want %q", got, test.ranges)
			}
		})
	}
}

func joined[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return strings.Join(texts, " ")
}

// TestWhatTellsConnectionsApart: the address, the server's name, the host of requests, or the port alone.
func TestWhatTellsConnectionsApart(t *testing.T) {
	entry := func(protocol federation.Protocol, undeclared bool, addresses ...string) facettest.Service {
		port := facettest.Port(80, protocol)
		port.Undeclared = undeclared
		return facettest.Service{Name: "shop/api.example.com", Provider: federation.External, Shard: federation.Shard{
			MeshExternal: true, Ports: []federation.Port{port}, VIPs: prefixes(addresses...), Resolution: federation.DNSLB,
		}}
	}
	pods := entry(federation.TCP, true)
	pods.Cluster, pods.Provider = "c1", federation.Kubernetes
	for name, test := range map[string]struct {
		service facettest.Service
		want    string
	}{
		"TLS":                             {entry(federation.TLS, false), "name"},
		"HTTPS":                           {entry(federation.HTTPS, false), "name"},
		"TLS at an address":               {entry(federation.TLS, false, "10.0.0.1"), ""},
		"HTTP":                            {entry(federation.HTTP, false), ""},
		"bytes":                           {entry(federation.TCP, false), "port"},
		"bytes at an address":             {entry(federation.TCP, false, "10.0.0.1"), ""},
		"undeclared":                      {entry(federation.TCP, true), "host port"},
		"undeclared, at an address":       {entry(federation.TCP, true, "10.0.0.1"), ""},
		"undeclared, at an automatic one": {entry(federation.TCP, true, "240.240.0.1"), "host port"},
		"undeclared, of a cluster":        {pods, "host"},
	} {
		t.Run(name, func(t *testing.T) {
			v := facettest.Mesh{Services: []facettest.Service{test.service}}.View(t, everyone)
			owner, ok := service.OwnerOf(v, resource.ClusterID{Host: "api.example.com", Port: 80})
			if !ok {
				t.Fatal("nobody owns the port")
			}
			var got []string
			if service.ByServerName(owner, v.Facet) {
				got = append(got, "name")
			}
			if service.ByHost(owner) {
				got = append(got, "host")
			}
			if service.ByPort(owner, v.Facet) {
				got = append(got, "port")
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("connections are told apart by %q, want %q", got, test.want)
			}
		})
	}
}

// TestOwnersOfNames: whose cluster a name means, and what the others are told.
func TestOwnersOfNames(t *testing.T) {
	of := func(namespace string, provider federation.Provider, exportTo ...string) facettest.Service {
		cluster := federation.ClusterID("c1")
		if provider == federation.External {
			cluster = ""
		}
		return facettest.Service{Name: namespace + "/web.example.com", Cluster: cluster, Provider: provider, Shard: federation.Shard{
			Ports: []federation.Port{facettest.Port(80, federation.HTTP)}, ExportTo: exportTo,
		}}
	}
	since := func(s facettest.Service, second int64) facettest.Service {
		s.Created = time.Unix(second, 0)
		return s
	}
	for name, test := range map[string]struct {
		services []facettest.Service
		facet    node.Facet
		owner    string
		reason   string
	}{
		"the only one": {[]facettest.Service{of("a", federation.Kubernetes)}, everyone, "a", ""},
		"a cluster's":  {[]facettest.Service{of("a", federation.External), of("b", federation.Kubernetes)}, everyone, "b", "is a service of a cluster; give the ServiceEntry another host"},
		"the first":    {[]facettest.Service{of("a", federation.External), of("b", federation.External)}, everyone, "a", "its namespace comes first; give one of them another name"},
		"the older": {
			[]facettest.Service{since(of("a", federation.External), 2), since(of("b", federation.External), 1)},
			everyone, "b",
			"is older; give one of them another name",
		},
		"its own": {
			[]facettest.Service{of("a", federation.External), of("b", federation.External)},
			node.Facet{Scope: node.ScopePrivate, Namespace: "b"},
			"b",
			"is of the proxies' own namespace",
		},
		"as everyone has it": {
			[]facettest.Service{of("a", federation.External), of("b", federation.External)}, node.Facet{Scope: node.ScopePrivate, Namespace: "a"}, "", "own namespace",
		},
		"another's private": {[]facettest.Service{of("a", federation.Kubernetes, ".")}, everyone, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := facettest.Mesh{Services: test.services}.View(t, test.facet)
			owner, ok := service.OwnerOf(v, resource.ClusterID{Host: "web.example.com", Port: 80})
			got := ""
			if ok {
				got = owner.Service.Key.Namespace
			}
			reasons := ""
			for _, r := range v.Reasons {
				reasons += r.Message
			}
			if got != test.owner || (reasons == "") != (test.reason == "") || !strings.Contains(reasons, test.reason) {
				t.Errorf("the owner is %q, and the reason %q; want %q and %q", got, reasons, test.owner, test.reason)
			}
		})
	}
}

func TestOtherNames(t *testing.T) {
	named := func(name string, shard federation.Shard) facettest.Service {
		shard.Ports = []federation.Port{facettest.Port(80, federation.HTTP)}
		return facettest.Service{Name: name, Cluster: "c1", Shard: shard}
	}
	mesh := facettest.Mesh{Services: []facettest.Service{
		named("shop/web.shop", federation.Shard{Aliases: []federation.Hostname{"web.old", "taken.shop"}}),
		named("shop/taken.shop", federation.Shard{}),
		named("shop/alias.shop", federation.Shard{ExternalName: "web.shop"}),
		named("shop/far.shop", federation.Shard{ExternalName: "a.example.com"}),
	}}
	v := mesh.View(t, everyone)
	of := func(host federation.Hostname) *federation.Service {
		s, ok := v.Reader.Spec(federation.ServiceKey{Hostname: host, Namespace: "shop"})
		if !ok {
			t.Fatalf("there is no service %s", host)
		}
		return s
	}
	if got := fmt.Sprint(service.Aliases(v, of("web.shop"))); got != "[web.old alias.shop]" {
		t.Errorf("web.shop is also called %s", got)
	}
	for host, want := range map[federation.Hostname]bool{"web.shop": false, "alias.shop": true, "far.shop": false} {
		if got := service.IsAlias(v, of(host)); got != want {
			t.Errorf("%s is another name: %t, want %t", host, got, want)
		}
	}
	direct := mesh.View(t, node.Facet{Scope: node.ScopePublic, GRPC: true})
	if service.IsAlias(direct, of("alias.shop")) {
		t.Error("clients of gRPC resolve the name themselves, and get an alias")
	}
	if to, alias := service.AliasAmong(v, "alias.shop", service.ServedPort{}); alias != of("alias.shop") || to != "web.shop" {
		t.Errorf("at a port that no service has, alias.shop is a name of %q by %v", to, alias)
	}
}

func TestPlaces(t *testing.T) {
	near, far := node.Facet{Place: node.Near}, node.Facet{Place: "far"}
	with := func(distribution string) federation.Shard {
		return federation.Shard{TrafficDistribution: distribution, Ports: []federation.Port{facettest.Port(80, federation.HTTP)}}
	}
	balanced, enabled := &federation.MeshSettings{}, true
	balanced.LocalityLoadBalancing.Enabled = &enabled
	for name, test := range map[string]struct {
		host     string
		shard    federation.Shard
		rule     string
		settings *federation.MeshSettings
		want     bool
	}{
		"the same everywhere":   {host: "web.shop", shard: with("")},
		"PreferClose":           {host: "web.shop", shard: with("PreferClose"), want: true},
		"PreferSameZone":        {host: "web.shop", shard: with("PreferSameZone"), want: true},
		"PreferSameNode":        {host: "web.shop", shard: with("PreferSameNode"), want: true},
		"an unknown wish":       {host: "web.shop", shard: with("Anywhere")},
		"cluster-local":         {host: "dns.kube-system.svc.cluster.local", shard: with(""), want: true},
		"the mesh wants it":     {host: "web.shop", shard: with(""), settings: balanced, want: true},
		"outliers":              {host: "web.shop", shard: with(""), rule: `{"trafficPolicy": {"outlierDetection": {}}}`, want: true},
		"a share of localities": {host: "web.shop", shard: with(""), rule: `{"trafficPolicy": {"loadBalancer": {"localityLbSetting": {"distribute": [{"from": "a", "to": {"a": 100}}]}}}}`, want: true},
		"another rule":          {host: "web.shop", shard: with(""), rule: `{"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := facettest.Mesh{Settings: test.settings, Services: []facettest.Service{{Name: "shop/" + test.host, Cluster: "c1", Shard: test.shard}}}
			if test.rule != "" {
				mesh.Rules = []string{"shop/a " + test.host + " " + test.rule}
			}
			v := mesh.View(t, everyone)
			s, ok := v.Reader.Spec(federation.ServiceKey{Hostname: federation.Hostname(test.host), Namespace: "shop"})
			if !ok {
				t.Fatal("there is no service")
			}
			if got := service.HasPlace(near, s, v.Reader); got != test.want || service.HasPlace(far, s, v.Reader) == got || !service.HasPlace(node.Facet{}, s, v.Reader) {
				t.Errorf("its endpoints depend on the place of proxies: %t, want %t", got, test.want)
			}
		})
	}
}

func TestPortsAndProtocols(t *testing.T) {
	undeclared := facettest.Port(82, federation.TCP)
	undeclared.Undeclared = true
	mesh := facettest.Mesh{Services: []facettest.Service{{Name: "shop/web.shop", Cluster: "c1", Shard: federation.Shard{Ports: []federation.Port{
		facettest.Port(80, federation.HTTP), facettest.Port(81, federation.TCP), undeclared, facettest.Port(53, federation.UDP), facettest.Port(54, federation.UDP),
	}}}}}
	v := mesh.View(t, everyone)
	services := v.Reader.ByHostname("web.shop")
	if got := fmt.Sprint(service.PortNumbers(services)); got != "[80 81 82]" {
		t.Errorf("the ports are %s", got)
	}
	for number, want := range map[uint16]bool{80: true, 81: false, 82: true, 53: false, 90: false} {
		if got := service.SpeaksHTTP(v, number); got != want {
			t.Errorf("port %d speaks HTTP: %t, want %t", number, got, want)
		}
	}
	for number, want := range map[uint16]bool{80: false, 53: true} {
		if owner := service.DatagramOwner(v, services, number); (owner.Service != nil) != want {
			t.Errorf("datagrams to port %d have an owner: %t, want %t", number, owner.Service != nil, want)
		}
	}
}
