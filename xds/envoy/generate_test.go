package envoy_test

import (
	"fmt"
	"net/netip"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// drawSnapshot makes an arbitrary snapshot of few names, so that hostnames, VIPs,
// ports and addresses meet often.
func drawSnapshot(t *rapid.T) *federation.Snapshot {
	w := newFixture()
	for _, id := range []federation.ClusterID{"c1", "c2"} {
		w.attach(id, rapid.SampledFrom([]federation.NetworkID{"", "n1", "n2"}).Draw(t, "network"))
		for range rapid.IntRange(0, 4).Draw(t, "services") {
			w.say(id, drawKey(t), drawShard(t))
		}
	}
	drawRules(t, w)
	drawSidecars(t, w)
	for i := range rapid.IntRange(0, 3).Draw(t, "virtual services") {
		w.configure(drawVirtualService(t, i))
	}
	for _, name := range []string{"front", "back"} {
		w.configure(drawGateway(t, name))
	}
	if rapid.Bool().Draw(t, "settings") {
		exports := func(of string) []string {
			return rapid.SampledFrom([][]string{nil, {"*"}, {"."}, {"~"}, {"shop"}, {"other", "."}}).Draw(t, of)
		}
		w.configure(&federation.Object{Key: federation.MeshSettingsKey, Digest: "drawn", Spec: &federation.MeshSettings{
			QUICListeners: rapid.Bool().Draw(t, "http3"), DefaultServiceExportTo: exports("services"),
			DefaultVirtualServiceExportTo: exports("routes"), DefaultDestinationRuleExportTo: exports("rules"),
		}})
	}
	return w.snapshot
}

func drawKey(t *rapid.T) federation.ServiceKey {
	return federation.ServiceKey{
		Hostname: rapid.SampledFrom([]federation.Hostname{
			"web.shop.svc.cluster.local", "web.other.svc.cluster.local", "web.shop.svc", "web.shop", "db.shop.svc.cluster.local",
			"web.shop.svc.other.domain", "web", "api.example.com", "*.example.com", "10.1.0.1",
		}).Draw(t, "host"),
		Namespace: rapid.SampledFrom([]string{"", "shop", "other"}).Draw(t, "namespace"),
	}
}

func drawShard(t *rapid.T) *federation.Shard {
	s := &federation.Shard{
		Resolution: federation.Resolution(rapid.IntRange(0, 4).Draw(t, "resolution")),
		ExportTo:   rapid.SampledFrom([][]string{nil, nil, {"."}, {"shop"}, {"shop", "other"}, {"*"}}).Draw(t, "exportTo"),
	}
	s.ExternalName = rapid.SampledFrom([]federation.Hostname{
		"", "", "", "web.shop.svc.cluster.local", "web.shop.svc", "api.example.com",
		"db.example.com",
	}).Draw(t, "external name")
	if rapid.Bool().Draw(t, "aliases") {
		s.Aliases = []federation.Hostname{"web.dc1.example", "db.shop.svc.cluster.local"}
	}
	for range rapid.IntRange(0, 2).Draw(t, "vips") {
		s.VIPs = append(s.VIPs, netip.MustParsePrefix(rapid.SampledFrom([]string{
			"10.1.0.1/32", "10.1.0.2/32", "10.2.0.0/24", "fd00::1/128", "fd00::/64",
		}).Draw(t, "vip")))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "ports") {
		s.Ports = append(s.Ports, federation.Port{
			Name:   fmt.Sprintf("p%d", i),
			Number: rapid.SampledFrom([][]uint16{{80, 8080}, {443, 15001}, {3306, 15006}}[i]).Draw(t, "port"),
			Protocol: rapid.SampledFrom([]federation.Protocol{
				federation.HTTP, federation.HTTP, federation.GRPC, federation.TCP, federation.HTTPS,
				federation.UDP, federation.Unsupported, "",
			}).Draw(t, "protocol"),
			Undeclared: rapid.Bool().Draw(t, "undeclared"),
		})
	}
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, drawEndpoint(t))
	}
	return s
}

func drawEndpoint(t *rapid.T) federation.Endpoint {
	var address federation.Address
	text := rapid.SampledFrom([]string{
		"10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::a", "unix:/run/app.sock", "backend.example.com",
		"127.0.0.1",
	}).Draw(t, "address")
	if err := address.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	e := federation.Endpoint{
		Address:        address,
		Health:         rapid.SampledFrom([]federation.Health{federation.Healthy, federation.Draining, federation.Unhealthy}).Draw(t, "health"),
		Weight:         rapid.SampledFrom([]uint32{0, 1, 7, 1 << 31, 1<<32 - 1}).Draw(t, "weight"),
		Network:        rapid.SampledFrom([]federation.NetworkID{"", "n1", "n2"}).Draw(t, "endpoint network"),
		Locality:       federation.Locality{Region: rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "region")},
		TLSMode:        rapid.SampledFrom([]string{"", "istio", "disabled"}).Draw(t, "tls mode of an endpoint"),
		Hostname:       rapid.SampledFrom([]string{"", "", "pod-0", "pod-1"}).Draw(t, "hostname"),
		ServiceAccount: rapid.SampledFrom([]string{"", "shop/web", "spiffe://x/y"}).Draw(t, "account"),
		Labels:         map[string]string{"version": rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(t, "version")},
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "endpoint ports") {
		e.Ports = append(e.Ports, federation.EndpointPort{
			Name:   fmt.Sprintf("p%d", i),
			Number: rapid.SampledFrom([]uint16{80, 8080, 0}).Draw(t, "number"),
		})
	}
	return e
}

func drawNode(t *rapid.T) envoy.Node {
	namespace := rapid.SampledFrom([]string{"shop", "other", ""}).Draw(t, "proxy namespace")
	metadata := map[string]any{
		"CLUSTER_ID":                    rapid.SampledFrom([]string{"c1", "c2", "unknown", ""}).Draw(t, "cluster"),
		"NETWORK":                       rapid.SampledFrom([]string{"", "n1"}).Draw(t, "proxy network"),
		"NAMESPACE":                     namespace,
		"IDENTITY_SOURCE":               rapid.SampledFrom([]string{"", "ads"}).Draw(t, "identity"),
		"DNS_CAPTURE":                   rapid.Bool().Draw(t, "names"),
		"WORKLOAD_IDENTITY_SOCKET_FILE": rapid.SampledFrom([]string{"", "./socket"}).Draw(t, "agent"),
		"PROXY_CONFIG": map[string]any{
			"discoveryAddress": rapid.SampledFrom([]string{"", "hub:15012"}).Draw(t, "older agent"),
			"proxyMetadata":    map[string]any{"ISTIO_DUAL_STACK": rapid.SampledFrom([]any{nil, "true"}).Draw(t, "dual stack")},
		},
		"ROUTER_MODE":       rapid.SampledFrom([]string{"", "sni-dnat"}).Draw(t, "router mode"),
		"INTERCEPTION_MODE": rapid.SampledFrom([]string{"", "", "NONE", "TPROXY"}).Draw(t, "interception"),
		"LABELS":            map[string]any{"istio": "ingress"},
		"INSTANCE_IPS":      rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2,fd00::a", "fd00::a"}).Draw(t, "addresses"),
		"HTTP_PROXY_PORT":   rapid.SampledFrom([]any{"15080", 80, ""}).Draw(t, "proxy port"),
	}
	typ := rapid.SampledFrom([]string{"sidecar", "sidecar", "sidecar", "router", "ingress"}).Draw(t, "type")
	domain := rapid.SampledFrom([]string{
		"shop.svc.cluster.local", "other.svc.cluster.local", "shop.svc.other.domain",
		"shop", "",
	}).Draw(t, "domain")
	n := parse(t, typ+"~10.0.0.1~app~"+domain, metadata)
	n.Stats = n.Agent && rapid.Bool().Draw(t, "Istio's filters")
	return n
}
