package xds

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// undeclared is a service at an address of its own, with a port 80 of which proxies detect the protocol.
func undeclared(i int) federation.Edit {
	shard := &federation.Shard{
		VIPs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 32)},
		Ports: []federation.Port{{Name: "web", Number: 80, Protocol: federation.TCP, Undeclared: true}},
	}
	return declaring(federation.ServiceKey{Hostname: federation.Hostname(fmt.Sprintf("s%d.shop", i)), Namespace: "shop"}, shard)
}

// resolvingNames is a ServiceEntry of which proxies resolve the names, and its service.
func resolvingNames() federation.Edit {
	host := federation.Hostname("*.example.com")
	e := declaring(federation.ServiceKey{Hostname: host, Namespace: "shop"}, &federation.Shard{
		Resolution: federation.DynamicDNS, MeshExternal: true, Ports: []federation.Port{{Name: "web", Number: 80, Protocol: federation.HTTP}},
	})
	key := tenantKey("ServiceEntry", "apis")
	entry := &federation.Object{Key: key, Digest: "1", Names: []string{string(host), federation.DynamicDNSEntries}}
	e.Objects = setObjects(entry).Objects
	return e
}

func declaring(key federation.ServiceKey, shard *federation.Shard) federation.Edit {
	return federation.Edit{
		Source:   federation.ShardKey{Cluster: "c1", Provider: federation.Mock},
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key: shard}},
	}
}

// TestK71ListenersOfAPortAreBuiltApart: a service that comes to a port on which proxies detect
// protocols has none of the listeners of the other services built again, whether names are
// resolved there or not. An entry that resolves names has them all.
func TestK71ListenersOfAPortAreBuiltApart(t *testing.T) {
	const services = 20
	s, _ := federation.Next(federation.Empty(), undeclared(0))
	for i := range services - 1 {
		s, _ = federation.Next(s, undeclared(i+1))
	}
	resolving, _ := federation.Next(s, resolvingNames())
	n := shopNode(t, "shop")
	again := func(s *federation.Snapshot, e federation.Edit) []string {
		listeners := slices.Sorted(maps.Keys(affectedBy(builtFor(t, n, s), s, e)))
		return slices.DeleteFunc(listeners, func(name string) bool { return !strings.HasPrefix(name, "listener 10.96.") })
	}
	if got := again(s, undeclared(services)); len(got) > 0 {
		t.Errorf("a new service has listeners of others built again: %q", got)
	}
	if got := again(resolving, undeclared(services)); len(got) > 0 {
		t.Errorf("a new service has listeners of others built again where names are resolved: %q", got)
	}
	if got := again(s, resolvingNames()); len(got) != services {
		t.Errorf("an entry that resolves names has %d listeners built again, want %d: %q", len(got), services, got)
	}
}
