package kubernetes

import (
	"slices"
	"testing"
)

// TestAddressesFromOutside: they are neither VIPs nor endpoints; a value that is not an address
// is excluded and reported.
func TestAddressesFromOutside(t *testing.T) {
	for name, test := range map[string]struct {
		spec, status string
		want         []string
		problems     map[string]string
	}{
		"cluster IP":             {"type: ClusterIP", "ip: 192.0.2.1", nil, nil},
		"external IPs":           {"type: ClusterIP, externalIPs: [192.0.2.9]", "ip: 192.0.2.1", []string{"192.0.2.9"}, nil},
		"load balancer":          {"type: LoadBalancer, externalIPs: [192.0.2.9]", "ip: 192.0.2.1", []string{"192.0.2.9", "192.0.2.1"}, nil},
		"load balancer, name":    {"type: LoadBalancer", "hostname: LB.example.com.", []string{"lb.example.com"}, nil},
		"load balancer, IP wins": {"type: LoadBalancer", "ip: 192.0.2.1, hostname: lb.example.com", []string{"192.0.2.1"}, nil},
		"strange": {"type: LoadBalancer, externalIPs: [10.0.0.01]", `hostname: "a b"`, nil, map[string]string{
			"Service shop/Web spec.externalIPs[0]":                     "not an IP address",
			"Service shop/Web status.loadBalancer.ingress[0].hostname": "not a DNS name",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, meta1+"spec: {"+test.spec+", ports: [{name: tls, port: 15443}]}\nstatus: {loadBalancer: {ingress: [{"+test.status+"}]}}")
			e := full(m)
			var got []string
			for _, a := range shardOf(t, e, "web.shop.svc.cluster.local").External {
				got = append(got, a.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the addresses are %q, want %q", got, test.want)
			}
			wantProblems(t, e, test.problems)
		})
	}
}
