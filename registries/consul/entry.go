package consul

import (
	"strings"

	"github.com/hashicorp/consul/api"

	"isthmus.dev/isthmus/federation"
)

// canaryService is the service that every Consul has: its servers.
const canaryService = "consul"

// entry is one service instance with its node and its checks, as
// /v1/health/service answers it. The output of checks is never read (B-C10).
type entry struct {
	Node    *api.Node
	Service *api.AgentService
	Checks  []check
}

type check struct {
	CheckID string
	Status  string
}

// isService tells an instance of a service from proxies and gateways, and drops
// that has no instance at all (B-C14).
func (e *entry) isService() bool {
	return e.Service != nil && e.Node != nil && e.Service.Kind == api.ServiceKindTypical && e.Service.PeerName == ""
}

// external tells an instance on a node that has no agent.
func (e *entry) external() bool { return e.Node.Meta["external-node"] == "true" }

// health is the worst of the checks. A warning still serves, as in Consul's own
// DNS. Maintenance is UNHEALTHY: who takes an instance out wants nothing sent
// there, even where it is the last. An unknown status counts as critical.
func (e *entry) health() federation.Health {
	for _, c := range e.Checks {
		if c.Status != api.HealthPassing && c.Status != api.HealthWarning {
			return federation.Unhealthy
		}
		if c.CheckID == api.NodeMaint || strings.HasPrefix(c.CheckID, api.ServiceMaintPrefix) {
			return federation.Unhealthy
		}
	}
	return federation.Healthy
}

func (e *entry) warning() bool {
	for _, c := range e.Checks {
		if c.Status == api.HealthWarning {
			return true
		}
	}
	return false
}

// rawWeight is the weight that Consul's DNS would use for the instance now.
func (e *entry) rawWeight() int {
	if e.warning() {
		return e.Service.Weights.Warning
	}
	return e.Service.Weights.Passing
}

func (e *entry) rawAddress() string {
	if e.Service.Address != "" {
		return e.Service.Address
	}
	return e.Node.Address
}

// locality is the instance's own, else its node's, else the datacenter as the
// zone (seeds 5.3).
func (e *entry) locality(datacenter string) federation.Locality {
	for _, l := range []*api.Locality{e.Service.Locality, e.Node.Locality} {
		if l != nil && (l.Region != "" || l.Zone != "") && isTidy(l.Region) && isTidy(l.Zone) {
			return federation.Locality{Region: l.Region, Zone: l.Zone}
		}
	}
	return federation.Locality{Zone: datacenter}
}
