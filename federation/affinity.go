package federation

import "fmt"

// ClientAffinity is the sessionAffinity of a Service and its sessionAffinityConfig: for how
// many seconds a client stays with an endpoint. The zero value is None. Proxies do not follow
// it (ADR 181): it is for those who read what clusters export.
type ClientAffinity struct {
	Seconds uint32 `json:"seconds,omitempty"`
}

// String is the affinity as Kubernetes names it.
func (a ClientAffinity) String() string {
	if a.Seconds > 0 {
		return "ClientIP"
	}
	return "None"
}

// Affinity is that of the shard which comes first in precedence. Headless services have none.
func (s *Service) Affinity() ClientAffinity {
	if len(s.Endpoints) == 0 || s.Resolution == Passthrough {
		return ClientAffinity{}
	}
	return s.Shards.Of(s.Endpoints[0].Shard).Affinity
}

// compareAffinity notes what exports of a service disagree on. Services of one name that are
// not exported may differ: each cluster has its own.
func (m *merger) compareAffinity(of ClusterID, have, other ClientAffinity) {
	switch {
	case have == other || !m.in.key.Hostname.IsClusterSet() || m.svc.Resolution == Passthrough:
	case have.String() != other.String():
		m.conflict(ConflictAffinity, of, fmt.Sprintf("sessionAffinity is %s in %s and %s in %s", have, m.first, other, of))
	default:
		m.conflict(ConflictAffinityConfig, of, fmt.Sprintf("sessionAffinityConfig.clientIP.timeoutSeconds is %d in %s and %d in %s",
			have.Seconds, m.first, other.Seconds, of))
	}
}
