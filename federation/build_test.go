package federation

import (
	"net/netip"
	"testing"
)

// The builders of this file keep the stories of the other tests short.

func key(host, ns string) ServiceKey { return ServiceKey{Hostname: Hostname(host), Namespace: ns} }

func shardOf(cluster string) ShardKey {
	return ShardKey{Cluster: ClusterID(cluster), Provider: Kubernetes}
}

func vip(addr string) netip.Prefix {
	ip := netip.MustParseAddr(addr)
	return netip.PrefixFrom(ip, ip.BitLen())
}

func endpoint(addr string, port uint16, labels ...string) Endpoint {
	e := Endpoint{
		Address: IPAddress(netip.MustParseAddr(addr)), Ports: []EndpointPort{{Name: "http", Number: port}},
		Health: Healthy, Network: DefaultNetwork,
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if e.Labels == nil {
			e.Labels = map[string]string{}
		}
		e.Labels[labels[i]] = labels[i+1]
	}
	return e
}

func web(vips string, endpoints ...Endpoint) *Shard {
	s := &Shard{Ports: []Port{{Name: "http", Number: 80, Protocol: HTTP}}, Endpoints: endpoints}
	if vips != "" {
		s.VIPs = []netip.Prefix{vip(vips)}
	}
	return s
}

func set(source ShardKey, services map[ServiceKey]*Shard) Edit {
	return Edit{Source: source, Services: Delta[ServiceKey, *Shard]{Set: services}}
}

func after(edits ...Edit) *Snapshot {
	s := Empty()
	for _, e := range edits {
		s, _ = Next(s, e)
	}
	return s
}

func mustService(t *testing.T, s *Snapshot, k ServiceKey) *Service {
	t.Helper()
	svc, ok := s.Service(k)
	if !ok {
		t.Fatalf("service %s is not in the snapshot", k)
	}
	return svc
}

func addresses(instances []Instance) []string {
	var list []string
	for _, i := range instances {
		list = append(list, i.Endpoint.Address.String())
	}
	return list
}
