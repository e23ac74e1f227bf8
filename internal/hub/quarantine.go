package hub

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/xds"
)

// quarantine counts the objects over which the hub panicked: those of its clusters, those
// of the configuration, and those with which it cannot build what proxies get.
type quarantine struct {
	hub       federation.ClusterID
	snapshots interface{ Latest() *federation.Snapshot }
	proxies   interface{ Faulty() []string }
	kinds     []schema.Kind
	counts    *metrics.Snapshots
}

// registryKinds are what registries read.
var registryKinds = []string{"Service", "EndpointSlice", "Pod", "Node", "Namespace"}

// measure counts anew; kinds of which nothing is in quarantine count as zero.
func (q quarantine) measure() {
	type object struct {
		cluster federation.ClusterID
		title   string
	}
	found := map[object]bool{}
	for _, title := range q.proxies.Faulty() {
		found[object{q.hub, title}] = true
	}
	now := q.snapshots.Latest()
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
	for _, kind := range q.kinds {
		counted[kind.Name] = 0
	}
	for o := range found {
		kind, _, _ := strings.Cut(o.title, " ")
		counted[kind]++
	}
	for kind, n := range counted {
		q.counts.Quarantined(kind, n)
	}
}
