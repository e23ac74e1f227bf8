package endpoint

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// offered are endpoints of these weights.
func offered(weights ...uint32) []Offer {
	var all []Offer
	for i, w := range weights {
		ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		all = append(all, Offer{Endpoint: &federation.Endpoint{Address: federation.IPAddress(ip), Weight: w}, number: 80})
	}
	return all
}

// Every endpoint has its share wherever it is: here and behind gateways, which may be
// those of several networks.
func TestMembersWeigh(t *testing.T) {
	for name, test := range map[string]struct {
		direct   []uint32
		networks map[string][]uint32 // network@GATEWAY,GATEWAY to weights
		want     string              // of the endpoints, and of the gateways in their order
	}{
		"endpoints alone":            {direct: []uint32{1, 3}, want: "1 3"},
		"one gateway":                {direct: []uint32{1}, networks: map[string][]uint32{"n2@1": {1, 1}}, want: "1 2"},
		"two gateways share":         {direct: []uint32{1}, networks: map[string][]uint32{"n2@1,2": {1, 1, 1}}, want: "2 3 3"},
		"networks of two and three":  {direct: []uint32{1}, networks: map[string][]uint32{"n2@1,2": {1}, "n3@3,4,5": {1}}, want: "6 3 3 2 2 2"},
		"a gateway of both networks": {networks: map[string][]uint32{"n2@1": {1}, "n3@1": {2}}, want: "3"},
		"weights of endpoints count": {direct: []uint32{2}, networks: map[string][]uint32{"n2@1": {5}}, want: "2 5"},
	} {
		t.Run(name, func(t *testing.T) {
			h := VisibleEndpoints{Direct: offered(test.direct...), behind: map[federation.NetworkID]group{}, entries: map[netip.AddrPort]*entry{}}
			for at, weights := range test.networks {
				id, gateways, _ := strings.Cut(at, "@")
				g := group{offers: offered(weights...)}
				for last := range strings.SplitSeq(gateways, ",") {
					g.gateways = append(g.gateways, federation.Gateway{Address: netip.MustParseAddrPort("192.0.2." + last + ":15443")})
				}
				h.behind[federation.NetworkID(id)] = g
				for _, gateway := range g.gateways {
					h.enter(gateway, federation.NetworkID(id))
				}
			}
			var got []string
			for _, m := range h.Members(&federation.Service{}) {
				got = append(got, fmt.Sprint(m.weight))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("the weights are %v; want %s", got, test.want)
			}
		})
	}
}

// The sum of weights fits what Envoy takes, and no weight is 0.
func TestWeightsFit(t *testing.T) {
	all := slices.Repeat([]uint32{math.MaxUint32}, 5)
	all = append(all, 1)
	for _, behind := range []bool{false, true} {
		h := VisibleEndpoints{Direct: offered(all...), behind: map[federation.NetworkID]group{}, entries: map[netip.AddrPort]*entry{}}
		if behind {
			g := group{offers: offered(all...), gateways: []federation.Gateway{{Address: netip.MustParseAddrPort("192.0.2.1:15443")}}}
			h.behind["n2"] = g
			h.enter(g.gateways[0], "n2")
		}
		sum := uint64(0)
		for _, m := range h.Members(&federation.Service{}) {
			if m.weight == 0 {
				t.Errorf("with gateways: %t: a weight is 0", behind)
			}
			sum += uint64(m.weight)
		}
		if sum > math.MaxUint32 || sum < math.MaxUint32/4 {
			t.Errorf("with gateways: %t: the weights sum up to %d, of %d", behind, sum, uint32(math.MaxUint32))
		}
	}
}

func TestDistance(t *testing.T) {
	here := federation.Locality{Region: "r1", Zone: "z1", SubZone: "s1"}
	for _, test := range []struct {
		to        federation.Locality
		takesOver string
		want      uint32
	}{
		{here, "", 0},
		{federation.Locality{Region: "r1", Zone: "z1", SubZone: "s2"}, "", 1},
		{federation.Locality{Region: "r1", Zone: "z2", SubZone: "s1"}, "", 2},
		{federation.Locality{Region: "r2", Zone: "z1", SubZone: "s1"}, "", 4},
		{federation.Locality{Region: "r2"}, "r2", 3},
		{federation.Locality{Region: "r3"}, "r2", 4},
		{federation.Locality{}, "", 4},
	} {
		if got := distance(here, test.to, test.takesOver); got != test.want {
			t.Errorf("the distance to %s, where %q takes over, is %d; want %d", test.to, test.takesOver, got, test.want)
		}
	}
}
