package derive

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/smallmap"
)

// Split parts what a value read of its own, such as services, from what is about many
// hosts: settings, clusters, networks, whole kinds and what is named by a wildcard. Of
// many values that are made together, the latter is noted once for all.
func Split(d federation.Deps) (own, common federation.Deps) {
	own = federation.Deps{
		Services: d.Services, VIPs: d.VIPs, Hostnames: d.Hostnames, Addresses: d.Addresses,
		Anywhere: d.Anywhere, Hosts: d.Hosts, KeySets: d.KeySets, Problems: d.Problems,
	}
	common = federation.Deps{
		Ports: d.Ports, Clusters: d.Clusters, Sets: d.Sets, Networks: d.Networks, Settings: d.Settings, Labels: d.Labels, AllSpecs: d.AllSpecs,
	}
	own.Names, common.Names = parted(d.Names, func(n federation.ObjectName) bool { return strings.HasPrefix(n.Name, "*") })
	own.Objects, common.Objects = parted(d.Objects, func(o federation.ObjectKey) bool { return o.Namespace == "" }) // of the whole mesh
	return own, common
}

func parted[K comparable](all smallmap.Set[K], isCommon func(K) bool) (own, common smallmap.Set[K]) {
	for key := range all.All() {
		if isCommon(key) {
			smallmap.Add(&common, key)
		} else {
			smallmap.Add(&own, key)
		}
	}
	return own, common
}
