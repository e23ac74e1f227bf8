package federation

import (
	"net/netip"
	"slices"
	"testing"
)

func TestServicesAreFoundByVIPWhileTheyHaveIt(t *testing.T) {
	vip, other := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2")
	at := func(s *Snapshot, vip netip.Addr) []ServiceKey {
		var keys []ServiceKey
		for _, svc := range s.Read().SelectAtVIP(vip, func(*Service) bool { return true }) {
			keys = append(keys, svc.Key)
		}
		return keys
	}
	say := func(s *Snapshot, cluster ClusterID, key ServiceKey, vips ...netip.Prefix) *Snapshot {
		delta := Delta[ServiceKey, *Shard]{Set: map[ServiceKey]*Shard{key: {Ports: []Port{{Number: 80}}, VIPs: vips}}}
		s, _ = Next(s, Edit{Source: ShardKey{cluster, Mock}, Services: delta})
		return s
	}
	a, b := ServiceKey{Hostname: "a"}, ServiceKey{Hostname: "b"}
	s, _ := Next(Empty(), Edit{Clusters: Delta[ClusterID, ClusterSpec]{Set: map[ClusterID]ClusterSpec{"c1": {}, "c2": {}}}})
	s = say(s, "c1", b, netip.PrefixFrom(vip, 32), netip.MustParsePrefix("10.1.0.0/24"))
	s = say(s, "c2", a, netip.PrefixFrom(vip, 32))
	s = say(s, "c1", a, netip.PrefixFrom(vip, 32), netip.PrefixFrom(other, 32))
	if got := at(s, vip); !slices.Equal(got, []ServiceKey{a, b}) {
		t.Errorf("at %s there are %v, want a and b", vip, got)
	}
	s = say(s, "c1", a, netip.PrefixFrom(other, 32))
	if got := at(s, vip); !slices.Equal(got, []ServiceKey{a, b}) {
		t.Errorf("at %s there are %v, want a, by its other cluster, and b", vip, got)
	}
	s, _ = Next(s, Edit{Clusters: Delta[ClusterID, ClusterSpec]{Gone: []ClusterID{"c2"}}})
	if got := at(s, vip); !slices.Equal(got, []ServiceKey{b}) {
		t.Errorf("at %s there are %v, want b", vip, got)
	}
	if got := at(s, other); !slices.Equal(got, []ServiceKey{a}) {
		t.Errorf("at %s there are %v, want a", other, got)
	}
}
