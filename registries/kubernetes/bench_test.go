package kubernetes

import (
	"fmt"
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/federation"
)

// filled is a cluster of many services with ten endpoints each.
func filled(services int) *model {
	m := newModel("")
	for i := range services {
		name := fmt.Sprintf("s%d", i)
		m.set(&service{
			record:  record{k: key{Namespace: "shop", Name: name}},
			service: federation.ServiceKey{Hostname: federation.Hostname(name + ".shop.svc.cluster.local"), Namespace: "shop"},
			shard:   federation.Shard{Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}},
		})
		m.set(parseSlice(benchSlice(name, i, 0)))
	}
	m.edit(true)
	return m
}

func benchSlice(name string, i, round int) *discoveryv1.EndpointSlice {
	port := int32(8080)
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(string), Port: &port}},
	}
	for e := range 10 {
		node := fmt.Sprintf("n%d", (i+e)%200)
		address := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(e)})
		if e == 0 {
			address = netip.AddrFrom4([4]byte{11, byte(round >> 16), byte(round >> 8), byte(round)})
		}
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{address.String()}, NodeName: &node})
	}
	return out
}

// BenchmarkSliceEvent is one changed EndpointSlice to one edit.
func BenchmarkSliceEvent(b *testing.B) {
	for _, services := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			m := filled(services)
			b.ReportAllocs()
			round := 0
			for b.Loop() {
				round++
				m.set(parseSlice(benchSlice("s7", 7, round)))
				if e, _ := m.edit(false); len(e.Services.Set) != 1 {
					b.Fatal("not one service changed")
				}
			}
		})
	}
}

// BenchmarkFull is the full edit after all lists.
func BenchmarkFull(b *testing.B) {
	for b.Loop() {
		filled(5000)
	}
}
