package istiodebug

import (
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// clusterPage is an attached cluster as Istio's clusterz shows it.
type clusterPage struct {
	ID     federation.ClusterID `json:"id"`
	Secret string               `json:"secretName"`
	Status string               `json:"syncStatus"`
}

// clusters shows a cluster that the hub follows as synced, as istiod does; other phases
// have the hub's names. The hub does not say where the credentials come from.
func (d *Debug) clusters(add adder) error {
	for c := range d.o.Snapshots.Latest().Clusters() {
		status := strings.ToLower(string(c.Status.Phase))
		if c.Status.Phase == federation.Ready {
			status = "synced"
		}
		if err := add("", clusterPage{ID: c.ID, Status: status}); err != nil {
			return err
		}
	}
	return nil
}

// servicePage is a service as Istio's registryz shows it, as far as the hub knows it.
type servicePage struct {
	Hostname   federation.Hostname   `json:"hostname"`
	Ports      []portPage            `json:"ports"`
	VIPs       vipPage               `json:"clusterVIPs"`
	Accounts   []string              `json:"serviceAccounts,omitempty"`
	Created    time.Time             `json:"creationTime"`
	External   bool                  `json:"MeshExternal"`
	Attributes serviceAttributesPage `json:"Attributes"`
}

type portPage struct {
	Name     string              `json:"name,omitempty"`
	Number   uint16              `json:"port"`
	Protocol federation.Protocol `json:"protocol"`
}

type vipPage struct {
	Addresses map[federation.ClusterID][]string
}

type serviceAttributesPage struct {
	Name, Namespace string
}

func (d *Debug) services(add adder) error {
	for s := range d.o.Snapshots.Latest().Services().All() {
		if err := add("", pageOf(s)); err != nil {
			return err
		}
	}
	return nil
}

func pageOf(s *federation.Service) servicePage {
	name, _, _ := strings.Cut(string(s.Key.Hostname), ".")
	one := servicePage{
		Hostname: s.Key.Hostname, Ports: []portPage{}, VIPs: vipPage{map[federation.ClusterID][]string{}}, Accounts: s.ServiceAccounts,
		Created: s.Created, External: s.MeshExternal, Attributes: serviceAttributesPage{name, s.Key.Namespace},
	}
	for _, p := range s.Ports {
		one.Ports = append(one.Ports, portPage{p.Name, p.Number, p.Protocol})
	}
	for cluster, vips := range s.ClusterVIPs.All() {
		for _, vip := range vips {
			text := vip.String()
			if vip.IsSingleIP() {
				text = vip.Addr().String()
			}
			one.VIPs.Addresses[cluster] = append(one.VIPs.Addresses[cluster], text)
		}
	}
	return one
}

// shardsPage are the endpoints of a service as Istio's endpointz shows them.
type shardsPage struct {
	Shards   map[string][]federation.Endpoint
	Accounts []string `json:"ServiceAccounts"`
}

// endpoints shows for each host, and each namespace that has it, the endpoints by registry.
func (d *Debug) endpoints(add adder) error {
	var host federation.Hostname
	var of map[string]shardsPage
	flush := func() error {
		if of == nil {
			return nil
		}
		return add(string(host), of)
	}
	for s := range d.o.Snapshots.Latest().Services().All() {
		if s.Key.Hostname != host {
			if err := flush(); err != nil {
				return err
			}
			host, of = s.Key.Hostname, map[string]shardsPage{}
		}
		shards := map[string][]federation.Endpoint{}
		for _, e := range s.Endpoints {
			shards[string(e.Shard.Provider)+"/"+string(e.Shard.Cluster)] = e.Endpoints
		}
		of[s.Key.Namespace] = shardsPage{shards, s.ServiceAccounts}
	}
	return flush()
}
