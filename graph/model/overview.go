package model

import (
	"iter"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
)

// counts are how often things occur.
type counts[K ~string] map[K]int

// inOrder lists those of the names, which are all that can occur.
func inOrder[K ~string, T any](of counts[K], names []K, show func(K, int) T) []T {
	all := []T{}
	for _, name := range names {
		if of[name] > 0 {
			all = append(all, show(name, of[name]))
		}
	}
	return all
}

// NewClusterOverview counts clusters.
func NewClusterOverview(from *federation.Snapshot) ClusterOverview {
	total, phases := 0, counts[ClusterPhase]{}
	for of := range from.Clusters() {
		total++
		phases[PhaseOf(of)]++
	}
	return ClusterOverview{Total: total, ByPhase: inOrder(phases, AllClusterPhase, func(phase ClusterPhase, n int) PhaseCount {
		return PhaseCount{Phase: phase, Count: n}
	})}
}

// NewProxyOverview counts streams of proxies.
func NewProxyOverview(streams iter.Seq[*fleet.Proxy]) ProxyOverview {
	total, states, clusters := 0, counts[SyncState]{}, counts[federation.ClusterID]{}
	for of := range streams {
		total++
		states[WorstState(of)]++
		clusters[of.Cluster]++
	}
	return ProxyOverview{
		Total: total,
		ByState: inOrder(states, AllSyncState, func(state SyncState, n int) SyncStateCount {
			return SyncStateCount{State: state, Count: n}
		}),
		ByCluster: inOrder(clusters, slices.Sorted(maps.Keys(clusters)), func(id federation.ClusterID, n int) ClusterCount {
			return ClusterCount{ClusterID: nonEmpty(string(id)), Count: n}
		}),
	}
}

// ServiceNumbers are those that take a look at every service.
type ServiceNumbers struct {
	Services  ServiceOverview
	Endpoints EndpointOverview
}

// NewServiceNumbers counts services and their endpoints.
func NewServiceNumbers(from *federation.Snapshot) ServiceNumbers {
	var out ServiceNumbers
	health, networks := counts[Health]{}, counts[federation.NetworkID]{}
	for of := range from.Services().All() {
		out.Services.Total++
		if len(of.Conflicts) > 0 {
			out.Services.WithConflicts++
		}
		n := 0
		for _, group := range of.Endpoints {
			n += len(group.Endpoints)
			for i := range group.Endpoints {
				health[Health(group.Endpoints[i].Health)]++
				networks[group.Endpoints[i].Network]++
			}
		}
		if n == 0 {
			out.Services.WithoutEndpoints++
		}
		out.Endpoints.Total += n
	}
	out.Endpoints.ByHealth = inOrder(health, AllHealth, func(health Health, n int) HealthCount {
		return HealthCount{Health: health, Count: n}
	})
	out.Endpoints.ByNetwork = inOrder(networks, slices.Sorted(maps.Keys(networks)), func(id federation.NetworkID, n int) NetworkCount {
		return NetworkCount{NetworkID: string(id), Network: networkIn(from, id), Count: n}
	})
	return out
}

// FindingCounts are how many objects have findings of each code, with the highest severity of these.
type FindingCounts map[string]FindingCodeCount

// Add counts the findings of one object, and returns their codes, each once.
func (c FindingCounts) Add(found []apply.Finding) (codes []string) {
	for _, f := range found {
		of := c[f.Code]
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
			of.Count++
		}
		of.Code, of.DocURL, of.Severity = f.Code, findingDoc(f.Code), higher(of.Severity, Severity(f.Severity))
		c[f.Code] = of
	}
	return codes
}

// higher is the severity that comes first in the schema, which begins with the highest.
func higher(a, b Severity) Severity {
	if a == "" || slices.Index(AllSeverity, b) < slices.Index(AllSeverity, a) {
		return b
	}
	return a
}

// All lists them by code.
func (c FindingCounts) All() []FindingCodeCount {
	all := make([]FindingCodeCount, 0, len(c))
	for _, code := range slices.Sorted(maps.Keys(c)) {
		all = append(all, c[code])
	}
	return all
}

// NewGatewayOverview counts gateways.
func NewGatewayOverview(from *federation.Snapshot) GatewayOverview {
	var out GatewayOverview
	for network := range from.Networks() {
		for i := range network.Gateways {
			out.Total++
			if isUnreachable(network.Gateways[i]) {
				out.Unreachable++
			}
		}
	}
	return out
}

// isUnreachable reports whether a network reports the gateway as unreachable and none as reachable.
func isUnreachable(of federation.Gateway) bool {
	return len(of.Verdicts) > 0 && !slices.ContainsFunc(of.Verdicts, func(v federation.Verdict) bool { return v.Reachable })
}
