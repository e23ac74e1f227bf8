package external_test

import (
	"net/netip"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
)

// TestG102DefaultsOfServiceEntries: what an entry does not say is as Istio's reference has it.
func TestG102DefaultsOfServiceEntries(t *testing.T) {
	automatic := []netip.Addr{netip.MustParseAddr("240.240.0.1")}
	read := func(spec string) *federation.Shard {
		t.Helper()
		key := shop("api.example.com")
		shards, problems := external.Services([]external.Entry{entry(t, "api", 0, spec)}, map[federation.ServiceKey][]netip.Addr{key: automatic})
		if shards[key] == nil || len(problems) > 0 {
			t.Fatalf("%s has the problems %v", spec, codes(problems))
		}
		return shards[key]
	}
	const start = "{hosts: [api.example.com], ports: [{number: 80, name: http}]"
	none := read(start + "}")
	fixed := read(start + ", resolution: STATIC, endpoints: [{address: 192.0.2.1}]}")
	named := read(start + ", resolution: DNS}")
	if len(fixed.Endpoints) != 1 || len(named.Endpoints) != 1 || len(fixed.VIPs) != 1 {
		t.Fatalf("the endpoints are %v and %v, the VIPs are %v", fixed.Endpoints, named.Endpoints, fixed.VIPs)
	}
	e := fixed.Endpoints[0]
	host, _ := named.Endpoints[0].Address.Host()
	for _, c := range []struct {
		field     string
		got, want any
	}{
		{"addresses", fixed.VIPs[0].Addr(), automatic[0]},
		{"addresses, with NONE", len(none.VIPs), 0},
		{"location", none.MeshExternal, true},
		{"resolution", none.Resolution, federation.Passthrough},
		{"ports[].protocol", none.Ports[0].Undeclared, true}, // is detected
		{"ports[].targetPort", e.Ports[0].Number, uint16(80)},
		{"endpoints, with DNS", host, "api.example.com"},
		{"endpoints[].ports", len(e.Ports), 1},
		{"endpoints[].weight", max(e.Weight, 1), uint32(1)},
		{"endpoints[].network", e.Network, federation.DefaultNetwork},
		{"endpoints[].locality", e.Locality, federation.Locality{}},
		{"endpoints[].serviceAccount", e.ServiceAccount, ""},
		{"endpoints[].serviceAccount, mutual TLS", e.TLSMode, ""},
		{"exportTo", len(none.ExportTo), 0}, // the mesh decides
		{"subjectAltNames", len(none.ServiceAccounts), 0},
		{"workloadSelector", none.Selector == nil, true},
	} {
		if c.got != c.want {
			t.Errorf("without %s, the service has %v, want %v", c.field, c.got, c.want)
		}
	}
}
