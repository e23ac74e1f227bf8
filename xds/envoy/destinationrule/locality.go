package destinationrule

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// Localities say which endpoints come first: those of a rule, else those of the mesh.
type Localities struct {
	Off              bool // the rule turns priorities and shares off
	Distribute       []federation.LocalityShares
	Failover         []federation.RegionFailover
	FailoverPriority []string // KEY, or KEY=VALUE
	// Regions: endpoints always have priorities, by their regions and not by zones.
	Regions bool
}

// LocalitiesOf reads the policy. Its setting replaces that of the mesh as a whole.
func LocalitiesOf(policy *networking.TrafficPolicy, mesh *federation.MeshSettings) Localities {
	if set := policy.GetLoadBalancer().GetZoneAwareLbSetting(); set != nil {
		return regionsOf(set)
	}
	set := policy.GetLoadBalancer().GetLocalityLbSetting()
	if set == nil {
		if mesh == nil || OrderForMesh(mesh, false) {
			return Localities{}
		}
		of := mesh.LocalityLoadBalancing
		return Localities{Distribute: of.Distribute, Failover: of.Failover, FailoverPriority: of.FailoverPriority}
	}
	if set.GetEnabled() != nil && !set.GetEnabled().GetValue() {
		return Localities{Off: true}
	}
	l := Localities{FailoverPriority: set.GetFailoverPriority()}
	for _, d := range set.GetDistribute() {
		l.Distribute = append(l.Distribute, federation.LocalityShares{From: d.GetFrom(), To: d.GetTo()})
	}
	for _, f := range set.GetFailover() {
		l.Failover = append(l.Failover, federation.RegionFailover{From: f.GetFrom(), To: f.GetTo()})
	}
	return l
}

// OrderForMesh reports whether the settings say so of the order of endpoints by place: true, that all services have it, or false,
// that none has it unless a rule or the service wants it. Settings may say neither.
func OrderForMesh(mesh *federation.MeshSettings, said bool) bool {
	return mesh != nil && mesh.LocalityLoadBalancing.Enabled != nil && *mesh.LocalityLoadBalancing.Enabled == said
}

func regionsOf(set *networking.ZoneAwareLoadBalancerSetting) Localities {
	if set.GetEnabled() != nil && !set.GetEnabled().GetValue() {
		return Localities{Off: true}
	}
	l := Localities{FailoverPriority: set.GetFailoverPriority(), Regions: true}
	for _, f := range set.GetFailover() {
		l.Failover = append(l.Failover, federation.RegionFailover{From: f.GetFrom(), To: f.GetTo()})
	}
	return l
}

// IgnoredLocalities is what of the policy has no effect, if the endpoints come by EDS or by DNS.
func IgnoredLocalities(policy *networking.TrafficPolicy, eds bool) (without []Ignored) {
	const byDNS = "proxies resolve the endpoints of the service by DNS"
	set, zones := policy.GetLoadBalancer().GetLocalityLbSetting(), policy.GetLoadBalancer().GetZoneAwareLbSetting()
	switch {
	case !eds && zones != nil:
		return []Ignored{{"loadBalancer.zoneAwareLbSetting", byDNS}}
	case zones != nil && LocalitiesOf(policy, nil).Regions:
		return []Ignored{{
			"loadBalancer.zoneAwareLbSetting, within a region,",
			"requests are spread over its zones, because proxies do not know where their own service is; use localityLbSetting to prefer a zone",
		}}
	case !eds && len(set.GetDistribute())+len(set.GetFailover())+len(set.GetFailoverPriority()) > 0:
		return []Ignored{{"loadBalancer.localityLbSetting", byDNS}}
	}
	return nil
}

// SharesFrom are the shares of the first entry that the locality matches; none: requests
// are not distributed.
func (l Localities) SharesFrom(locality federation.Locality) map[string]uint32 {
	for _, d := range l.Distribute {
		if MatchesLocality(locality, d.From) {
			return d.To
		}
	}
	return nil
}

// MatchesLocality reports whether the locality is REGION/ZONE/SUBZONE, of which each part
// may be * and the last ones may be missing.
func MatchesLocality(l federation.Locality, pattern string) bool {
	parts := strings.SplitN(pattern, "/", 3)
	for i, part := range []string{l.Region, l.Zone, l.SubZone} {
		if i < len(parts) && parts[i] != "*" && parts[i] != part && (i == 0 || parts[i] != "") {
			return false
		}
	}
	return true
}

// PriorityLabels are the keys of proxies' labels by which endpoints are ordered, of those
// of Objects.ProxyLabels.
func PriorityLabels(keys []string) []string {
	first, _ := slices.BinarySearch(keys, federation.FailoverLabel)
	var found []string
	for _, key := range keys[first:] {
		label, is := strings.CutPrefix(key, federation.FailoverLabel)
		if !is {
			break
		}
		found = append(found, label)
	}
	return found
}
