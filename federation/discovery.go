package federation

import (
	"cmp"
	"slices"
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

// HasSynced reports whether every attached cluster was read completely at least
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
func (s *Snapshot) ByHostname(host Hostname) []*Service { return s.services.byHostname(host) }

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

// MatchesLabels reports whether the labels contain one of the sets; an empty
// collection is contained in everything.
func MatchesLabels(labels map[string]string, collection []map[string]string) bool {
	return len(collection) == 0 || slices.ContainsFunc(collection, func(set map[string]string) bool {
		return HasLabels(labels, set)
	})
}

// HasLabels reports whether all of the wanted labels are there.
func HasLabels(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
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
