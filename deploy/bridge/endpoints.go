package bridge

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"testing"
)

// entryPort is where gateways listen.
const entryPort = "15443"

// Entry is the address by which other networks enter.
func (g *Gateway) Entry() string { return net.JoinHostPort(g.Outside, entryPort) }

// SNI is what a sidecar asks a gateway for, to reach a service.
func SNI(host string) string { return fmt.Sprintf("outbound_.%d_._.%s", Port, host) }

// Endpoints are the addresses and ports to which a sidecar sends requests for a
// service, with their weights.
func (p *Pod) Endpoints(host string) (map[string]int, error) {
	return p.hosts(outbound(host))
}

// Updates counts how often the hub sent a sidecar endpoints of a service. A semicolon ends names in statistics.
func (p *Pod) Updates(host string) uint64 {
	return p.Envoy.Stat("cluster." + outbound(host) + ";.update_success")
}

// outbound is the sidecar's cluster of a service.
func outbound(host string) string { return fmt.Sprintf("outbound|%d||%s", Port, host) }

// Behind are those to which a gateway passes connections for a service on.
func (g *Gateway) Behind(host string) (map[string]int, error) { return g.hosts(SNI(host)) }

func (p *Pod) hosts(cluster string) (map[string]int, error) {
	body, err := p.Envoy.Admin("/clusters?format=json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		ClusterStatuses []struct {
			Name         string
			HostStatuses []struct {
				Weight  int
				Address struct {
					SocketAddress struct {
						Address   string
						PortValue int `json:"port_value"`
					} `json:"socket_address"`
				}
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	all := map[string]int{}
	for _, c := range answer.ClusterStatuses {
		if c.Name != cluster {
			continue
		}
		for _, h := range c.HostStatuses {
			at := h.Address.SocketAddress
			all[net.JoinHostPort(at.Address, strconv.Itoa(at.PortValue))] = h.Weight
		}
	}
	return all, nil
}

// Scale lets the first pods of a site serve, and no other.
func (s *Site) Scale(pods int) {
	for _, service := range []string{"web", "only-" + s.Cluster} {
		if s.Kube != nil {
			s.Kube.Apply(endpointSlice(s, service, pods))
			continue
		}
		for i := range s.Workload.Addresses {
			if i < pods {
				registerInConsul(s, service, i)
			} else {
				s.Consul.Put("/v1/catalog/deregister", map[string]any{"Node": fmt.Sprint("vm-", i)})
			}
		}
	}
}

// Open lets others enter a site by its first gateways, and by no other.
func (w *Topology) Open(t testing.TB, s *Site, gateways int) {
	t.Helper()
	if s.Network == "n1" {
		s.Kube.Apply(labelledGateway(s, gateways))
		return
	}
	w.Hub.Apply(t, networkManifest(s, gateways))
}
