package federation

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func networkObject(id NetworkID, spec *NetworkObject) Edit {
	o := &Object{Key: ObjectKey{Group: MeshGroup, Kind: NetworkKind.Name, Name: string(id)}, Digest: fmt.Sprintf("%+v", *spec), Spec: spec}
	return Edit{Objects: Delta[ObjectKey, *Object]{Set: map[ObjectKey]*Object{o.Key: o}}}
}

func meshObject(m MeshSettings) Edit {
	o := &Object{Key: MeshSettingsKey, Digest: fmt.Sprintf("%+v", m), Spec: &m}
	return Edit{Objects: Delta[ObjectKey, *Object]{Set: map[ObjectKey]*Object{o.Key: o}}}
}

func attach(id ClusterID, network NetworkID) Edit {
	return Edit{Clusters: Delta[ClusterID, ClusterSpec]{Set: map[ClusterID]ClusterSpec{id: {Provider: Kubernetes, Network: network}}}}
}

func resolved(name Hostname, to ...string) Edit {
	e := Edit{Resolved: Delta[Hostname, []netip.Addr]{Set: map[Hostname][]netip.Addr{name: nil}}}
	for _, ip := range to {
		e.Resolved.Set[name] = append(e.Resolved.Set[name], netip.MustParseAddr(ip))
	}
	return e
}

// eastWest is the Service of a gateway as Istio's users label it.
func eastWest(network string, external ...string) *Shard {
	s := &Shard{Ports: []Port{{Name: "tls", Number: 15443, Protocol: TLS}}, Labels: map[string]string{"topology.istio.io/network": network}}
	for _, a := range external {
		var address Address
		if err := address.UnmarshalText([]byte(a)); err != nil {
			panic(err)
		}
		s.External = append(s.External, address)
	}
	return s
}

func gatewayTexts(n *Network, observer NetworkID) []string {
	var texts []string
	for _, g := range n.GatewaysFrom(observer) {
		text := g.Address.String()
		if g.Locality != (Locality{}) {
			text += " in " + g.Locality.String()
		}
		texts = append(texts, text)
	}
	return texts
}

var gatewayService = key("gw.istio-system.svc.cluster.local", "istio-system")

func TestGatewaysOfANetwork(t *testing.T) {
	byService := NetworkGateway{}
	byService.Service.Hostname = gatewayService.Hostname
	labelled := eastWest("n2", "192.0.2.7", "lb.example")
	onPort := eastWest("n2", "192.0.2.7")
	onPort.Labels["networking.istio.io/gatewayPort"] = "443"
	onPort.Ports = []Port{{Name: "tls", Number: 443, Protocol: TLS}}
	plain := &Shard{Ports: labelled.Ports, External: labelled.External[:1]}
	pods := &Shard{Ports: labelled.Ports, Endpoints: []Endpoint{{
		Address: IPAddress(netip.MustParseAddr("10.2.0.9")), Network: "n2", Ports: []EndpointPort{{Name: "tls", Number: 9443}},
		Locality: Locality{Region: "r2", Zone: "z1"},
	}}}
	gateway := func(g ...NetworkGateway) Edit { return networkObject("n2", &NetworkObject{Gateways: g}) }
	service := func(s *Shard) Edit { return set(shardOf("c2"), map[ServiceKey]*Shard{gatewayService: s}) }
	for name, c := range map[string]struct {
		edits   []Edit
		want    []string // as seen from n1
		open    bool     // sent to directly
		refused string
	}{
		"none": {open: true},
		"by address": {
			edits: []Edit{gateway(NetworkGateway{Address: "192.0.2.1", Locality: "r2/z1"})},
			want:  []string{"192.0.2.1:15443 in r2/z1"},
		},
		"by address, loopback": {
			edits:   []Edit{gateway(NetworkGateway{Address: "127.0.0.1"})},
			refused: "127.0.0.1:15443 is a loopback address",
		},
		"by address, metadata": {
			edits:   []Edit{gateway(NetworkGateway{Address: "169.254.169.254"})},
			refused: "169.254.169.254:15443 is a link-local address",
		},
		"by name": {edits: []Edit{
			gateway(NetworkGateway{Hostname: "gw.example", Port: 443}),
			resolved("gw.example", "192.0.2.2", "192.0.2.1", "192.0.2.2"),
		}, want: []string{"192.0.2.1:443", "192.0.2.2:443"}},
		"by name, not resolved": {
			edits:   []Edit{gateway(NetworkGateway{Hostname: "gw.example"})},
			refused: "gw.example has no address: it was not resolved yet",
		},
		"by name, resolved to loopback": {edits: []Edit{
			gateway(NetworkGateway{Hostname: "gw.example"}),
			resolved("gw.example", "127.0.0.1", "192.0.2.1"),
		}, want: []string{"192.0.2.1:15443"}, refused: "127.0.0.1:15443 is a loopback address"},
		"by service, from outside":     {edits: []Edit{gateway(byService), service(plain)}, want: []string{"192.0.2.7:15443"}},
		"by service, by its endpoints": {edits: []Edit{gateway(byService), service(pods)}, want: []string{"10.2.0.9:9443 in r2/z1"}},
		"by service that is missing": {
			edits:   []Edit{gateway(byService)},
			refused: string(gatewayService.Hostname) + " is not a service",
		},
		"by label": {
			edits: []Edit{service(labelled), resolved("lb.example", "192.0.2.8")},
			want:  []string{"192.0.2.7:15443", "192.0.2.8:15443"},
		},
		"by label, on another port":              {edits: []Edit{service(onPort)}, want: []string{"192.0.2.7:443"}},
		"by label, of another cluster's network": {edits: []Edit{service(eastWest("n1", "192.0.2.7"))}, open: true},
		"by label and address": {edits: []Edit{
			service(eastWest("n2", "192.0.2.7")),
			gateway(NetworkGateway{Address: "192.0.2.7"}),
		}, want: []string{"192.0.2.7:15443"}, refused: "192.0.2.7:15443 was named before"},
		"by label, at a VIP": {edits: []Edit{
			service(eastWest("n2", "10.96.0.1")),
			set(shardOf("c1"), map[ServiceKey]*Shard{key("api.a", "a"): web("10.96.0.1")}),
		}, refused: "10.96.0.1 is the VIP of service a/api.a"},
		"from others only": {edits: []Edit{gateway(NetworkGateway{Address: "192.0.2.1", From: []NetworkID{"n3"}},
			NetworkGateway{Address: "192.0.2.2", From: []NetworkID{"n1", "n3"}})}, want: []string{"192.0.2.2:15443"}},
	} {
		t.Run(name, func(t *testing.T) {
			edits := append([]Edit{attach("c1", "n1"), attach("c2", "n2")}, c.edits...)
			for range len(edits) { // whatever comes first
				edits = append(edits[1:], edits[0])
				n, ok := after(edits...).Network("n2")
				if !ok {
					t.Fatal("the network is not known")
				}
				if got := gatewayTexts(n, "n1"); !slices.Equal(got, c.want) {
					t.Errorf("the gateways are %q, want %q", got, c.want)
				}
				if n.Gated == c.open {
					t.Errorf("gated is %t", n.Gated)
				}
				var refused []string
				for _, r := range n.Refused {
					refused = append(refused, r.Gateway+" "+r.Why)
				}
				if got := strings.Join(refused, "; "); got != c.refused {
					t.Errorf("refused is %q, want %q", got, c.refused)
				}
			}
		})
	}
}

// TestBO15LabelAloneMakesNoGateway: gateways are where the settings
// of the mesh allow them, and the cluster's problems say why.
func TestBO15LabelAloneMakesNoGateway(t *testing.T) {
	elsewhere := key("gw.shop.svc.cluster.local", "shop")
	s := after(attach("c2", "n2"), set(shardOf("c2"), map[ServiceKey]*Shard{elsewhere: eastWest("n2", "192.0.2.7")}))
	n, _ := s.Network("n2")
	if n.Gated || len(n.Gateways) > 0 {
		t.Errorf("a Service of any namespace became the gateway %v", n.Gateways)
	}
	problems := slices.Collect(s.Problems("c2"))
	if len(problems) != 1 || problems[0].Code != "GATEWAY_REFUSED" || problems[0].Object != "Service shop/gw" ||
		!strings.Contains(problems[0].Message, "gatewayNamespaces") {
		t.Errorf("the cluster has the problems %+v", problems)
	}
	s, changes := Next(s, meshObject(MeshSettings{GatewayNamespaces: []string{"shop"}}))
	n, _ = s.Network("n2")
	if !slices.Equal(gatewayTexts(n, "n1"), []string{"192.0.2.7:15443"}) ||
		!slices.Equal(changes.Networks, []NetworkID{"n2"}) {
		t.Errorf("after the settings allow it, the gateways are %v and the changes %v", n.Gateways, changes.Networks)
	}
	if c, _ := s.Cluster("c2"); c.Problems != 0 {
		t.Errorf("the cluster still has %d problems", c.Problems)
	}
	s = after(attach("c2", "n2"), set(shardOf("c2"), map[ServiceKey]*Shard{elsewhere: eastWest("n2", "192.0.2.7")}),
		Edit{Clusters: Delta[ClusterID, ClusterSpec]{Gone: []ClusterID{"c2"}}})
	if _, known := s.Cluster("c2"); known || len(slices.Collect(s.Problems("c2"))) > 0 {
		t.Error("something of a detached cluster is left")
	}
	if _, known := s.Network("n2"); known {
		t.Error("the network is known although nothing is in it")
	}
}

// TestRefusedGatewaysFollowTheirCluster: the reason why a label is not trusted
// is reported for the network in which the cluster is now.
func TestRefusedGatewaysFollowTheirCluster(t *testing.T) {
	s := after(attach("c2", "n1"), attach("c1", "n2"), set(shardOf("c2"), map[ServiceKey]*Shard{gatewayService: eastWest("n2", "192.0.2.7")}))
	for _, network := range []NetworkID{"n1", "n3"} {
		s, _ = Next(s, attach("c2", network))
		problems := slices.Collect(s.Problems("c2"))
		if want := "is in network " + string(network); len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
			t.Errorf("the cluster has the problems %+v, want that it %s", problems, want)
		}
	}
}

// TestNetworkOfAnEndpoint: its label, else the range of a Network, else its
// cluster's; whatever came first, and again when any of these changes.
func TestNetworkOfAnEndpoint(t *testing.T) {
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, p := range texts {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	at := func(ip string, network NetworkID) Edit {
		e := endpoint(ip, 80)
		e.Network = network
		return set(shardOf("c1"), map[ServiceKey]*Shard{key("web.a", "a"): web("", e)})
	}
	for name, c := range map[string]struct {
		edits []Edit
		want  NetworkID
	}{
		"its label": {[]Edit{
			attach("c1", "n1"), at("10.1.0.1", "vm"),
			networkObject("n5", &NetworkObject{CIDRs: prefixes("10.1.0.0/16")}),
		}, "vm"},
		"a range": {[]Edit{
			attach("c1", "n1"), at("10.1.0.1", "n1"),
			networkObject("n5", &NetworkObject{CIDRs: prefixes("10.1.0.0/16")}),
		}, "n5"},
		"the longest range": {[]Edit{
			attach("c1", "n1"), at("10.1.0.1", "n1"),
			networkObject("n5", &NetworkObject{CIDRs: prefixes("10.1.0.0/16")}),
			networkObject("n6", &NetworkObject{CIDRs: prefixes("10.1.0.0/24")}),
		}, "n6"},
		"a range of two networks": {[]Edit{
			attach("c1", "n1"), at("10.1.0.1", "n1"),
			networkObject("n5", &NetworkObject{CIDRs: prefixes("10.1.0.0/24")}),
			networkObject("n6", &NetworkObject{CIDRs: prefixes("10.1.0.0/24")}),
		}, "n1"},
		"a range of two networks, one its own": {[]Edit{
			attach("c1", "n5"), at("10.1.0.1", "n5"),
			networkObject("n4", &NetworkObject{CIDRs: prefixes("10.1.0.0/24")}),
			networkObject("n5", &NetworkObject{CIDRs: prefixes("10.1.0.0/24")}),
		}, "n5"},
		"a range of other clusters": {[]Edit{
			attach("c1", "n1"), at("10.1.0.1", "n1"),
			networkObject("n5", &NetworkObject{CIDRs: prefixes("10.1.0.0/24"), Clusters: []ClusterID{"c2"}}),
		}, "n1"},
		"a Network that lists the cluster": {[]Edit{
			attach("c1", ""), at("10.1.0.1", ""),
			networkObject("n5", &NetworkObject{Clusters: []ClusterID{"c1"}}),
		}, "n5"},
		"the cluster's own before such one": {[]Edit{
			attach("c1", "n1"), at("10.1.0.1", "n1"),
			networkObject("n5", &NetworkObject{Clusters: []ClusterID{"c1"}}),
		}, "n1"},
		"nothing": {[]Edit{at("10.1.0.1", "")}, DefaultNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			for range len(c.edits) {
				c.edits = append(c.edits[1:], c.edits[0])
				s := after(c.edits...)
				e := mustService(t, s, key("web.a", "a")).Endpoints[0].Endpoints[0]
				if e.Network != c.want {
					t.Errorf("the endpoint is in %s, want %s", e.Network, c.want)
				}
				ip, _ := e.Address.IP()
				if found := s.At(Place{Cluster: "c1", Addresses: []netip.Addr{ip}}).Instances(); c.want != "vm" && len(found) != 1 {
					t.Errorf("at its address there are %d instances", len(found))
				}
			}
		})
	}
}
