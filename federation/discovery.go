package federation

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Instance is one endpoint of a service for one of its ports: a workload that
// serves three ports has three instances (seeds 1.3).
type Instance struct {
	Service  *Service
	Port     ServicePort
	Shard    ShardKey
	Endpoint *Endpoint
	Number   uint16 // where the endpoint listens for Port; 0 for a unix socket
}

// Cluster is where the instance runs.
func (i Instance) Cluster() ClusterID { return cmp.Or(i.Endpoint.Cluster, i.Shard.Cluster) }

// Place says where a proxy is: which cluster it belongs to, what can be reached
// directly from it, and its addresses there.
type Place struct {
	Cluster   ClusterID // empty: unknown
	Network   NetworkID // empty: that of the cluster
	Addresses []netip.Addr
}

// HasSynced tells that every attached cluster was read completely at least
// once, or is served from its last known good state. A cluster that never
// answered keeps it false, whatever its phase; see registries.Supervisor.Ready
// for how long a start waits.
func (s *Snapshot) HasSynced() bool {
	for c := range s.Clusters() {
		if !c.Listed {
			return false
		}
	}
	return true
}

// ByHostname returns the services of that hostname, one for each namespace.
func (s *Snapshot) ByHostname(host Hostname) []*Service {
	var found []*Service
	s.services.byKey.WalkPrefix(string(host)+nul, func(_ string, svc *Service) bool {
		found = append(found, svc)
		return false
	})
	return found
}

// Lookup returns the only service of that hostname; nil if there is none, an
// error that lists the namespaces if there are several.
func (s *Snapshot) Lookup(host Hostname) (*Service, error) {
	found := s.ByHostname(host)
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	namespaces := make([]string, len(found))
	for i, svc := range found {
		namespaces[i] = fmt.Sprintf("%q", svc.Key.Namespace)
	}
	return nil, fmt.Errorf("hostname %s exists in several namespaces: name one of %s", host, strings.Join(namespaces, ", "))
}

// Instances returns the service's instances for a service port (not the port
// that the endpoint listens on); port 0 means every port. With a label
// collection only endpoints that carry all labels of one of its sets are
// returned; an empty collection matches all (seed 5).
func (s *Service) Instances(port uint16, collection ...map[string]string) []Instance {
	var found []Instance
	for _, p := range s.Ports {
		if port == 0 || p.Number == port {
			found = s.appendInstances(found, p, collection)
		}
	}
	return found
}

func (s *Service) appendInstances(found []Instance, p ServicePort, collection []map[string]string) []Instance {
	for _, group := range s.Endpoints {
		name, ok := p.DeclaredBy(group.Shard)
		if !ok {
			continue
		}
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			number, served := e.Port(name)
			_, unix := e.Address.Unix()
			if (served || unix) && MatchesLabels(e.Labels, collection) {
				found = append(found, Instance{Service: s, Port: p, Shard: group.Shard, Endpoint: e, Number: number})
			}
		}
	}
	return found
}

// MatchesLabels tells whether the labels contain one of the sets; an empty
// collection is contained in everything.
func MatchesLabels(labels map[string]string, collection []map[string]string) bool {
	return len(collection) == 0 || slices.ContainsFunc(collection, func(set map[string]string) bool {
		for k, v := range set {
			if have, ok := labels[k]; !ok || have != v {
				return false
			}
		}
		return true
	})
}

// NetworkOf is the network of the place: its own, unless that is the one that
// its cluster gives to what names none; else where Network objects put it, else
// that of its cluster.
func (s *Snapshot) NetworkOf(p Place) NetworkID {
	c, _ := s.Cluster(p.Cluster)
	said := cmp.Or(p.Network, c.filledIn())
	var at Address
	if len(p.Addresses) > 0 {
		at = IPAddress(p.Addresses[0])
	}
	return s.networks.networkOf(c, said, at)
}

// Placed is the network of the place if Network objects put it there.
func (s *Snapshot) Placed(p Place) (NetworkID, bool) {
	if s.networks.empty() {
		return "", false
	}
	id := s.NetworkOf(p)
	c, _ := s.Cluster(p.Cluster)
	return id, id != cmp.Or(p.Network, c.filledIn())
}

// InstancesAt returns the instances that live at the place's addresses, those
// of every address (seed 11). What runs in other clusters is left out where the
// place's cluster is known.
func (s *Snapshot) InstancesAt(p Place) []Instance {
	var found []Instance
	for _, r := range s.residentsAt(p) {
		if r.isPod {
			continue
		}
		svc, _ := s.services.byKey.Get(r.service.sortKey())
		for _, i := range svc.Instances(0) {
			ip, _ := i.Endpoint.Address.IP()
			if i.Shard == r.shard && (p.Cluster == "" || i.Cluster() == p.Cluster) && slices.Contains(p.Addresses, ip) && i.Endpoint.Network == s.NetworkOf(p) {
				found = append(found, i)
			}
		}
	}
	return found
}

// residentsAt returns each resident of the place once: workloads of its cluster
// alone where that is known, and endpoints of every shard.
func (s *Snapshot) residentsAt(p Place) []resident {
	var all []resident
	for _, addr := range p.Addresses {
		for _, r := range s.residents(AddressKey{Network: s.NetworkOf(p), Addr: addr}) {
			if (p.Cluster == "" || !r.isPod || r.shard.Cluster == p.Cluster) && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

// WorkloadsAt returns the workloads that live at the place's addresses.
func (s *Snapshot) WorkloadsAt(p Place) []*Workload {
	var found []*Workload
	for _, r := range s.residentsAt(p) {
		if w, ok := s.workloads.byKey.Get(workloadSortKey(r.shard, r.workload)); ok && r.isPod {
			found = append(found, w)
		}
	}
	return found
}

// LabelsAt returns the labels of the place's workloads; those of endpoints
// where no workload is known.
func (s *Snapshot) LabelsAt(p Place) []map[string]string {
	var found []map[string]string
	for _, w := range s.WorkloadsAt(p) {
		found = append(found, w.Labels)
	}
	if len(found) > 0 {
		return found
	}
	for _, i := range s.InstancesAt(p) {
		if len(i.Endpoint.Labels) > 0 {
			found = append(found, i.Endpoint.Labels)
		}
	}
	return found
}

// LocalityAt returns where the place's workloads run, if a registry knows.
func (s *Snapshot) LocalityAt(p Place) (Locality, bool) {
	for _, w := range s.WorkloadsAt(p) {
		if w.Locality != (Locality{}) {
			return w.Locality, true
		}
	}
	for _, i := range s.InstancesAt(p) {
		if i.Endpoint.Locality != (Locality{}) {
			return i.Endpoint.Locality, true
		}
	}
	return Locality{}, false
}

// ManagementPortsAt returns the ports that only the platform uses: a probe may
// as well ask on the port of a service, which stays that of the service.
func (s *Snapshot) ManagementPortsAt(p Place) []Port {
	var found []Port
	for _, w := range s.WorkloadsAt(p) {
		found = append(found, w.ManagementPorts...)
	}
	instances := s.InstancesAt(p)
	return slices.DeleteFunc(found, func(port Port) bool {
		return slices.ContainsFunc(instances, func(i Instance) bool { return i.Number == port.Number })
	})
}

// ProbesAt returns the health checks of the place's workloads.
func (s *Snapshot) ProbesAt(p Place) []Probe {
	var found []Probe
	for _, w := range s.WorkloadsAt(p) {
		found = append(found, w.Probes...)
	}
	return found
}

// AccountsFor returns the accounts that run the service on the given ports: its
// declared ones, and those of the endpoints that serve them. No ports: all.
func (s *Service) AccountsFor(ports ...uint16) []string {
	if len(ports) == 0 {
		return s.ServiceAccounts
	}
	var accounts []string
	for _, shard := range s.Shards.All() {
		accounts = append(accounts, shard.ServiceAccounts...)
	}
	for _, port := range ports {
		for _, i := range s.Instances(port) {
			if i.Endpoint.ServiceAccount != "" {
				accounts = append(accounts, i.Endpoint.ServiceAccount)
			}
		}
	}
	slices.Sort(accounts)
	return slices.Compact(accounts)
}
