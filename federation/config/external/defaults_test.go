package external_test

import (
	"maps"
	"net/netip"
	"strings"
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

// TestG108TargetPortsOfOriginalDestinations: with the resolution NONE, a port has the target port that the entry names, and
// that of an older entry stays. Endpoints have it with every other resolution.
func TestG108TargetPortsOfOriginalDestinations(t *testing.T) {
	const none = "{hosts: [api.example.com], resolution: NONE, ports: [{number: 80, name: http, targetPort: 8080}, {number: 81, name: same, targetPort: 81}, {number: 82, name: dialed}]}"
	const static = "{hosts: [static.example.com], resolution: STATIC, ports: [{number: 80, name: http, targetPort: 8080}], endpoints: [{address: 192.0.2.1}]}"
	const later = "{hosts: [api.example.com], resolution: NONE, ports: [{number: 80, name: other, targetPort: 9090}, {number: 83, name: more, targetPort: 8083}]}"
	shards, problems := external.Services([]external.Entry{
		entry(t, "api", 0, none), entry(t, "later", 1, later), entry(t, "static", 0, static),
	}, nil)
	if got := codes(problems); len(got) != 1 || !strings.HasPrefix(got[0], "DECIDED_BY_OLDER") {
		t.Errorf("the problems are %q", got)
	}
	targets := func(host string) map[uint16]uint16 {
		out := map[uint16]uint16{}
		for _, p := range shards[shop(host)].Ports {
			out[p.Number] = p.Target
		}
		return out
	}
	if got, want := targets("api.example.com"), (map[uint16]uint16{80: 8080, 81: 81, 82: 0, 83: 8083}); !maps.Equal(got, want) {
		t.Errorf("the target ports are %v, want %v", got, want)
	}
	if got := targets("static.example.com"); got[80] != 0 || shards[shop("static.example.com")].Endpoints[0].Ports[0].Number != 8080 {
		t.Errorf("with endpoints, the target ports are %v", got)
	}
}
