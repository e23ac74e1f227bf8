package collectors

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/xds"
)

// Quarantine counts the objects over which the hub panicked: those of its clusters, those
// of the configuration, and those with which it cannot build what proxies get.
type Quarantine struct {
	Hub       federation.ClusterID
	Snapshots interface{ Latest() *federation.Snapshot }
	Proxies   interface{ Faulty() []string }
	Kinds     []schema.Kind
	Counts    *metrics.Snapshots
}

// registryKinds are what registries read.
var registryKinds = []string{"Service", "EndpointSlice", "Pod", "Node", federation.NamespaceKind.Name}

// Measure counts again; kinds of which nothing is in quarantine count as zero.
func (q Quarantine) Measure() {
	type object struct {
		cluster federation.ClusterID
		title   string
	}
	found := map[object]bool{}
	for _, title := range q.Proxies.Faulty() {
		found[object{q.Hub, title}] = true
	}
	now := q.Snapshots.Latest()
	for cluster := range now.Clusters() {
		for p := range now.Problems(cluster.ID) {
			if p.Code == xds.HubFault {
				found[object{cluster.ID, p.Object}] = true
			}
		}
	}
	counted := map[string]int{}
	for _, kind := range registryKinds {
		counted[kind] = 0
	}
	for _, kind := range q.Kinds {
		counted[kind.Name] = 0
	}
	for o := range found {
		kind, _, _ := strings.Cut(o.title, " ")
		counted[kind]++
	}
	for kind, n := range counted {
		q.Counts.Quarantined(kind, n)
	}
}
