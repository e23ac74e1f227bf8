package endpoint

import (
	"net/netip"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// networkOf is the Network n2 with these gateways: ADDRESS, REGION/ZONE of it, port=80, and from=NETWORK.
func networkOf(gateways ...string) *federation.Object {
	spec := &federation.NetworkObject{}
	for _, text := range gateways {
		words := strings.Fields(text)
		g := federation.NetworkGateway{Address: words[0]}
		for _, word := range words[1:] {
			from, limited := strings.CutPrefix(word, "from=")
			switch {
			case limited:
				g.From = []federation.NetworkID{federation.NetworkID(from)}
			case word == "port=80":
				g.Port = 80
			default:
				g.Locality = word
			}
		}
		spec.Gateways = append(spec.Gateways, g)
	}
	return &federation.Object{Key: federation.NetworkKind.Key("", "n2"), Spec: spec}
}

// TestEndpointsOfOtherNetworks are reached by the gateways of their network, with their weight. Each case names what decides.
func TestEndpointsOfOtherNetworks(t *testing.T) {
	const here, there, g1, g2 = "10.0.0.1", "10.2.0.1 @n2", "192.0.2.1", "192.0.2.2"
	const outlier = `"outlierDetection": {"consecutive5xxErrors": 3}`
	const first = outlier + `, "loadBalancer": {"localityLbSetting": {"failoverPriority": ["a=1"]}}`
	const shared = outlier + `, "loadBalancer": {"localityLbSetting": {"distribute": [{"from": "r2/*", "to": {"r1/*": 100}}]}}`
	inR2 := func(f *node.Facet) {
		f.Place, f.Cluster, f.Locality = node.Near, "c1", federation.Locality{Region: "r2", Zone: "z2"}
	}
	for name, test := range map[string]struct {
		network   *federation.Object // nil: there is none
		policy    string             // of the DestinationRule
		endpoints []string
		facet     func(*node.Facet)
		dead      string // addresses of gateways that probes do not reach
		want      string
		noted     string
	}{
		"no Network":                           {endpoints: []string{here, there}, want: "[0] 1: 10.0.0.1", noted: "which no Network declares"},
		"Network without gateways":             {network: networkOf(), endpoints: []string{here, there}, want: "[0] 2: 10.0.0.1 10.2.0.1"},
		"Network.gateways":                     {network: networkOf(g1), endpoints: []string{here, there}, want: "[0] 2: 10.0.0.1 192.0.2.1"},
		"Network.gateways, its own proxy":      {network: networkOf(g1), endpoints: []string{there}, facet: func(f *node.Facet) { f.Network = "n2" }, want: "[0] 1: 10.2.0.1"},
		"two gateways share the weight":        {network: networkOf(g1, g2), endpoints: []string{here, there + " *3"}, want: "[0] 8: 10.0.0.1*2 192.0.2.1*3 192.0.2.2*3"},
		"gateways carry all weights":           {network: networkOf(g1), endpoints: []string{here, there + " *3", "10.2.0.2 @n2 *4"}, want: "[0] 8: 10.0.0.1 192.0.2.1*7"},
		"gateways.locality":                    {network: networkOf(g1 + " r2/z2"), endpoints: []string{here + " r1/z1", there + " r1/z1"}, want: "[0] r1/z1 1: 10.0.0.1; [0] r2/z2 1: 192.0.2.1"},
		"gateways.from":                        {network: networkOf(g1+" from=default", g2+" from=n3"), endpoints: []string{there}, want: "[0] 1: 192.0.2.1"},
		"gateways.from others":                 {network: networkOf(g2 + " from=n3"), endpoints: []string{here, there}, want: "[0] 1: 10.0.0.1", noted: "none of the gateways of network n2 may be entered"},
		"a gateway that cannot be used":        {network: networkOf("127.0.0.1"), endpoints: []string{here, there}, want: "[0] 1: 10.0.0.1", noted: "no gateway of network n2 can be used: 127.0.0.1:15443"},
		"an endpoint without mutual TLS":       {network: networkOf(g1), endpoints: []string{here, there + " plain"}, want: "[0] 1: 10.0.0.1", noted: "and does not take it"},
		"tls.mode DISABLE":                     {network: networkOf(g1), policy: `"tls": {"mode": "DISABLE"}`, endpoints: []string{here, there}, want: "[0] 1: 10.0.0.1", noted: "has tls.mode DISABLE"},
		"tls.mode ISTIO_MUTUAL":                {network: networkOf(g1), policy: `"tls": {"mode": "ISTIO_MUTUAL"}`, endpoints: []string{there}, want: "[0] 1: 192.0.2.1"},
		"proxyProtocol":                        {network: networkOf(g1), policy: `"proxyProtocol": {"version": "V2"}`, endpoints: []string{here, there}, want: "[0] 1: 10.0.0.1", noted: "has proxyProtocol"},
		"a gRPC client":                        {network: networkOf(g1), endpoints: []string{here, there}, facet: func(f *node.Facet) { f.GRPC = true }, want: "[0] 1: 10.0.0.1", noted: "gRPC clients without a proxy speak plain text"},
		"a proxy without identity":             {network: networkOf(g1), endpoints: []string{here, there}, facet: func(f *node.Facet) { f.Identity = false }, want: "[0] 1: 10.0.0.1", noted: "the proxy has no identity of the mesh"},
		"gateways.port, beside it an endpoint": {network: networkOf(g1), endpoints: []string{g1, there}, want: "[0] 2: 192.0.2.1 192.0.2.1"},
		"gateways.port is an endpoint's": {
			network: networkOf(g1 + " port=80"), endpoints: []string{g1, there}, want: "[0] 1: 192.0.2.1", noted: "the only gateway of network n2 has the address 192.0.2.1:80",
		},
		"gateways.port is an endpoint's, of two gateways": {
			network: networkOf(g1+" port=80", g2), endpoints: []string{g1, there}, want: "[0] 2: 192.0.2.1 192.0.2.2",
		},
		"outlierDetection, gateways have priorities": {
			network: networkOf(g1 + " r2/z2"), policy: outlier, endpoints: []string{here + " r3/z1", there + " r1/z1"}, facet: inR2,
			want: "[0] r2/z2 1: 192.0.2.1; [1] r3/z1 1: 10.0.0.1",
		},
		"failoverPriority, the proxy's network": {
			network: networkOf(), policy: strings.ReplaceAll(first, "a=1", "topology.istio.io/network"), endpoints: []string{here, there}, facet: inR2,
			want: "[0] 1: 10.0.0.1; [1] 1: 10.2.0.1",
		},
		"failoverPriority, all behind a gateway have the label": {
			network: networkOf(g1), policy: first, endpoints: []string{here, there + " a=1", "10.2.0.2 @n2 a=1"}, facet: inR2, want: "[0] 2: 192.0.2.1*2; [1] 1: 10.0.0.1",
		},
		"failoverPriority, some behind a gateway have it": {
			network: networkOf(g1), policy: first, endpoints: []string{here, there + " a=1", "10.2.0.2 @n2"}, facet: inR2, want: "[0] 3: 10.0.0.1 192.0.2.1*2",
		},
		"distribute, a gateway without a share": {
			network: networkOf(g1 + " r3/z1"), policy: shared, endpoints: []string{here + " r1/z1", there}, facet: inR2,
			want: "[0] r1/z1 100000: 10.0.0.1", noted: `are distributed over other localities than "r3/z1"`,
		},
		"distribute, one gateway of two without a share": {
			network: networkOf(g1+" r3/z1", g2+" r1/z1"), policy: shared, endpoints: []string{there}, facet: inR2, want: "[0] r1/z1 100000: 192.0.2.2",
		},
		"all behind it are draining":  {network: networkOf(g1), endpoints: []string{here, there + " draining *5"}, want: "[0] 6: 10.0.0.1 192.0.2.1*5 draining"},
		"some behind it are draining": {network: networkOf(g1), endpoints: []string{here, there, "10.2.0.2 @n2 draining *5"}, want: "[0] 2: 10.0.0.1 192.0.2.1"},
		"one gateway that fails":      {network: networkOf(g1, g2), endpoints: []string{there}, dead: g1, want: "[0] 1: 192.0.2.2"},
		"all gateways fail":           {network: networkOf(g1, g2), endpoints: []string{here, there}, dead: g1 + " " + g2, want: "[0] 2: 10.0.0.1*2; [1] 2: 192.0.2.1 192.0.2.2"},
		"one address in two networks": {network: networkOf(), endpoints: []string{"10.0.0.1 @n2 *5", here}, want: "[0] 1: 10.0.0.1", noted: "has the same address 10.0.0.1 and port 80"},
	} {
		t.Run(name, func(t *testing.T) {
			m := shop(t, test.policy, test.endpoints...)
			if test.network != nil {
				m.Objects = append(m.Objects, test.network)
			}
			f := node.Facet{Scope: node.ScopePublic, Network: federation.DefaultNetwork, Identity: true}
			if test.facet != nil {
				test.facet(&f)
			}
			snapshot, verdicts := m.Snapshot(t), federation.Edit{}
			verdicts.Verdicts.Set = map[federation.VerdictKey]federation.Verdict{}
			for _, address := range strings.Fields(test.dead) {
				key := federation.VerdictKey{Observer: federation.DefaultNetwork, Gateway: netip.MustParseAddrPort(address + ":15443")}
				verdicts.Verdicts.Set[key] = federation.Verdict{Observer: federation.DefaultNetwork}
			}
			snapshot, _ = federation.Next(snapshot, verdicts)
			v := facet.Open(f, snapshot.Read())
			if got := assigned(t, v); got != test.want {
				t.Errorf("the endpoints are %q, want %q", got, test.want)
			}
			if got := noted(v); (got == "") != (test.noted == "") || !strings.Contains(got, test.noted) {
				t.Errorf("it says %q, want %q", got, test.noted)
			}
		})
	}
}
