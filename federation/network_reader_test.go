package federation

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func networkText(s *Snapshot, id NetworkID) string {
	n, _ := s.Network(id)
	if n == nil {
		return ""
	}
	plain := *n
	plain.Version = 0
	return fmt.Sprintf("%+v", plain)
}

// TestR96EverySourceOfANetworkIsNoted changes one thing at a time that gateway selection
// reads. The network is as it would be made now, and no other network is made again. A
// source without a case fails.
func TestR96EverySourceOfANetworkIsNoted(t *testing.T) {
	gateway := func(g NetworkGateway) Edit { return networkObject("n2", &NetworkObject{Gateways: []NetworkGateway{g}}) }
	service := func(of string, s *Shard) Edit { return set(shardOf(of), map[ServiceKey]*Shard{gatewayService: s}) }
	byService := NetworkGateway{}
	byService.Service.Hostname = gatewayService.Hostname
	cases := map[string]struct {
		before []Edit
		change Edit
	}{
		"objects": {
			before: []Edit{gateway(NetworkGateway{Address: "192.0.2.1"})},
			change: gateway(NetworkGateway{Address: "192.0.2.2"}),
		},
		"objects, of the mesh": {
			before: []Edit{set(shardOf("c2"), map[ServiceKey]*Shard{key("gw.other", "other"): eastWest("n2", "192.0.2.7")})},
			change: meshObject(MeshSettings{GatewayNamespaces: []string{"*"}}),
		},
		"objects, the first": {change: gateway(NetworkGateway{Address: "192.0.2.1"})},
		"services": {
			before: []Edit{gateway(byService), service("c2", &Shard{Ports: eastWest("n2").Ports})},
			change: service("c2", &Shard{Ports: eastWest("n2").Ports, External: eastWest("n2", "192.0.2.7").External}),
		},
		"services, the first": {before: []Edit{gateway(byService)}, change: service("c2", eastWest("", "192.0.2.7"))},
		"vips": {before: []Edit{service("c2", eastWest("n2", "192.0.2.7"))}, change: set(shardOf("c1"), map[ServiceKey]*Shard{
			key("web.a", "a"): {VIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}},
		})},
		"members": {change: attach("c3", "n2")},
		// The hub says in which network c1 is when it refuses the label.
		"homes":  {before: []Edit{service("c1", eastWest("n2", "192.0.2.7"))}, change: attach("c1", "n3")},
		"claims": {change: service("c2", eastWest("n2", "192.0.2.7"))},
		"resolved": {
			before: []Edit{gateway(NetworkGateway{Hostname: "gw.example"})},
			change: resolved("gw.example", "192.0.2.1"),
		},
		"verdicts": {before: []Edit{gateway(NetworkGateway{Address: "192.0.2.1"})}, change: Edit{Verdicts: Delta[VerdictKey, Verdict]{
			Set: map[VerdictKey]Verdict{{Observer: "n1", Gateway: netip.MustParseAddrPort("192.0.2.1:15443")}: {Since: probedAt}},
		}}},
		"settings": {
			before: []Edit{gateway(NetworkGateway{Address: "127.0.0.1"})},
			change: Edit{Settings: &Settings{Addresses: AddressPolicy{AllowLoopback: true}}},
		},
	}
	sources := reflect.TypeFor[networkSources]()
	for i := range sources.NumField() {
		if _, tested := cases[sources.Field(i).Name]; !tested {
			t.Errorf("no case changes %s: add one", sources.Field(i).Name)
		}
	}
	for name, c := range cases {
		t.Run(strings.ReplaceAll(name, ", ", "/"), func(t *testing.T) {
			others := networkObject("n9", &NetworkObject{Gateways: []NetworkGateway{{Address: "192.0.2.99"}}})
			before := after(append([]Edit{attach("c1", "n1"), attach("c2", "n2"), others}, c.before...)...)
			now, _ := Next(before, c.change)
			want := *makeNetwork(newDraft(now).networkSources(), "n2").network
			if got := networkText(now, "n2"); got != fmt.Sprintf("%+v", want) {
				t.Errorf("the network is\n%s\nmade from nothing it is\n%+v", got, want)
			}
			if want.equal(makeNetwork(newDraft(before).networkSources(), "n2").network) {
				t.Error("the change makes no difference: it tests nothing")
			}
			if made := affectedBy(before, now); made["n9"] && name != "settings" {
				t.Errorf("networks %v are made again", made)
			}
		})
	}
}

// affectedBy are the networks that are made again when one snapshot becomes the other.
func affectedBy(before, now *Snapshot) map[NetworkID]bool {
	d := newDraft(now)
	d.base = before
	return d.networkSources().affected(before.networks.notes)
}
