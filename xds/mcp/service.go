package mcp

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
)

// timestamp is a time of a manifest.
type timestamp = struct{ time.Time }

// The labels by which Istio reads more of a WorkloadEntry.
const (
	labelTLSMode = "security.istio.io/tlsMode"
	mutualTLS    = "istio"
)

// entryOf is the service as a ServiceEntry, or nil: only what registries of clusters say
// of it counts. External services are served as the objects that they come from.
func entryOf(s *federation.Service) *networking.ServiceEntry {
	entry := &networking.ServiceEntry{
		Hosts: []string{string(s.Key.Hostname)}, Location: networking.ServiceEntry_MESH_INTERNAL,
		Resolution: networking.ServiceEntry_STATIC, ExportTo: s.ExportTo,
	}
	if s.MeshExternal {
		entry.Location = networking.ServiceEntry_MESH_EXTERNAL
	}
	ports := portsOf(s.Ports)
	for _, p := range ports {
		protocol := strings.ToUpper(string(p.Protocol))
		if p.Undeclared {
			protocol = ""
		}
		entry.Ports = append(entry.Ports, &networking.ServicePort{Number: uint32(p.Number), Name: p.unique, Protocol: protocol})
	}
	seen := map[netip.Addr]bool{}
	ours := false
	for _, of := range s.Endpoints {
		said := s.Shards.Of(of.Shard)
		if of.Shard.Provider.OfConfiguration() || said == nil || said.NameOf != "" {
			continue
		}
		ours = true
		for _, vip := range said.VIPs {
			if ip := vip.Addr(); vip.IsSingleIP() && !seen[ip] {
				seen[ip] = true
				entry.Addresses = append(entry.Addresses, ip.String())
			}
		}
		for i := range of.Endpoints {
			if e := endpointOf(s, ports, of, &of.Endpoints[i]); e != nil {
				entry.Endpoints = append(entry.Endpoints, e)
				if _, named := of.Endpoints[i].Address.Host(); named {
					entry.Resolution = networking.ServiceEntry_DNS
				}
			}
		}
	}
	if !ours || len(entry.Ports) == 0 || strings.Contains(string(s.Key.Hostname), "_") {
		return nil
	}
	return entry
}

// port is one of a ServiceEntry.
type port struct {
	federation.ServicePort
	unique string // its name
}

// portsOf are the ports as a ServiceEntry can have them: no two have the same number, so that
// a number of both TCP and UDP is that of TCP; consumers pass no datagrams on. Endpoints say
// their ports by name: each port has one, and no two have the same. Clusters may name
// different numbers alike.
func portsOf(all []federation.ServicePort) []port {
	streams := map[uint16]bool{}
	for _, p := range all {
		streams[p.Number] = streams[p.Number] || p.Protocol.Transport() == federation.TransportTCP
	}
	var ports []port
	taken := map[string]bool{}
	for _, p := range all {
		if streams[p.Number] && p.Protocol.Transport() != federation.TransportTCP {
			continue
		}
		name := cmp.Or(p.Name, "port-"+strings.ToLower(string(p.Protocol)))
		for own := name; taken[name]; own = name {
			name = fmt.Sprintf("%s-%d", own, p.Number)
		}
		taken[name] = true
		ports = append(ports, port{p, name})
	}
	return ports
}

// endpointOf is an endpoint that takes requests, or nil.
func endpointOf(s *federation.Service, ports []port, of federation.ShardEndpoints, e *federation.Endpoint) *networking.WorkloadEntry {
	ip, isIP := e.Address.IP()
	host, isHost := e.Address.Host()
	if e.Health == federation.Unhealthy || !isIP && !isHost {
		return nil
	}
	w := &networking.WorkloadEntry{
		Address: host, Ports: map[string]uint32{}, Labels: map[string]string{}, Network: string(e.Network), Weight: e.Weight,
		Locality: localityOf(e.Locality),
	}
	if isIP {
		w.Address = ip.String()
	}
	for k, v := range e.Labels {
		w.Labels[k] = v
	}
	if namespace, account, _ := strings.Cut(e.ServiceAccount, "/"); namespace == s.Key.Namespace {
		w.ServiceAccount = account
	}
	if e.TLSMode == mutualTLS {
		w.Labels[labelTLSMode] = mutualTLS
	} else if w.ServiceAccount != "" {
		w.Labels[labelTLSMode] = "disabled"
	}
	for _, p := range ports {
		if name, declared := p.DeclaredBy(of.Shard); declared {
			if number, listens := e.Port(name); listens {
				w.Ports[p.unique] = uint32(number)
			}
		}
	}
	if len(w.Ports) == 0 {
		return nil
	}
	return w
}

// localityOf is REGION/ZONE/SUBZONE, as far as it is known.
func localityOf(l federation.Locality) string {
	parts := []string{l.Region, l.Zone, l.SubZone}
	if end := slices.Index(parts, ""); end >= 0 {
		parts = parts[:end]
	}
	return strings.Join(parts, "/")
}
