package validation

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	api "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"

	"isthmus.dev/isthmus/federation/config/schema"
)

// maxTable is the largest table that Envoy takes for Maglev.
const maxTable = 5_000_011

func loadBalancer(at path, b *api.LoadBalancerSettings) []Problem {
	found := apply(at, b, loadBalancerRules)
	found = append(found, optional(at.field("consistentHash"), b.GetConsistentHash(), by(consistentHashRules))...)
	found = append(found, optional(at.field("warmup"), b.GetWarmup(), by(warmupRules))...)
	found = append(found, optional(at.field("localityLbSetting"), b.GetLocalityLbSetting(), locality)...)
	return append(found, optional(at.field("zoneAwareLbSetting"), b.GetZoneAwareLbSetting(), zoneAware)...)
}

var loadBalancerRules = []rule[*api.LoadBalancerSettings]{
	{"warmupDurationSecs", schema.Forbidden, func(b *api.LoadBalancerSettings) string {
		return when(b.GetWarmup() != nil && b.GetWarmupDurationSecs() != nil, "warmup is its newer form: remove warmupDurationSecs")
	}},
	{"warmupDurationSecs", schema.Invalid, func(b *api.LoadBalancerSettings) string { return wholeMilliseconds(b.GetWarmupDurationSecs()) }},
	{"zoneAwareLbSetting", schema.Forbidden, func(b *api.LoadBalancerSettings) string {
		return when(b.GetZoneAwareLbSetting() != nil && b.GetLocalityLbSetting() != nil,
			"localityLbSetting decides the same: remove one of the two")
	}},
	{"warmup", NoEffect, func(b *api.LoadBalancerSettings) string {
		warms := b.GetWarmup() != nil || b.GetWarmupDurationSecs() != nil
		other := b.GetConsistentHash() != nil || b.GetSimple() == api.LoadBalancerSettings_RANDOM ||
			b.GetSimple() == api.LoadBalancerSettings_PASSTHROUGH
		return when(warms && other, "only ROUND_ROBIN and LEAST_REQUEST warm endpoints up: choose one of them")
	}},
}

type consistentHash = api.LoadBalancerSettings_ConsistentHashLB

var consistentHashRules = []rule[*consistentHash]{
	{"httpCookie.name", schema.Required, func(h *consistentHash) string {
		return when(h.GetHttpCookie() != nil && h.GetHttpCookie().GetName() == "", "name the cookie")
	}},
	{"httpCookie.ttl", schema.Invalid, func(h *consistentHash) string {
		return when(h.GetHttpCookie().GetTtl().AsDuration() < 0, "%s is negative: write 0s for a cookie of the session",
			h.GetHttpCookie().GetTtl().AsDuration())
	}},
	{"httpHeaderName", schema.Required, func(h *consistentHash) string {
		_, is := h.GetHashKey().(*api.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName)
		return when(is && h.GetHttpHeaderName() == "", "name the header")
	}},
	{"httpQueryParameterName", schema.Required, func(h *consistentHash) string {
		_, is := h.GetHashKey().(*api.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName)
		return when(is && h.GetHttpQueryParameterName() == "", "name the parameter")
	}},
	{"minimumRingSize", schema.Forbidden, func(h *consistentHash) string {
		return when(h.GetMinimumRingSize() > 0 && h.GetHashAlgorithm() != nil,
			"ringHash.minimumRingSize is its newer form, and maglev has no ring: remove minimumRingSize")
	}},
	{"maglev.tableSize", schema.Required, func(h *consistentHash) string {
		return when(h.GetMaglev() != nil && h.GetMaglev().GetTableSize() == 0, "write the size of the table, a prime number such as 65537")
	}},
	{"maglev.tableSize", schema.Invalid, func(h *consistentHash) string {
		size := h.GetMaglev().GetTableSize()
		prime := big.NewInt(0).SetUint64(size).ProbablyPrime(0) // exact below 2^64
		return when(size != 0 && (size > maxTable || !prime), "%d is not a prime number of at most %d: write one such as 65537", size, maxTable)
	}},
	{"", NoEffect, func(h *consistentHash) string {
		return when(h.GetHashKey() == nil, "nothing is hashed: write httpHeaderName, httpCookie, httpQueryParameterName or useSourceIp")
	}},
}

var warmupRules = []rule[*api.WarmupConfiguration]{
	{"aggression", schema.Invalid, func(w *api.WarmupConfiguration) string {
		return when(w.GetAggression() != nil && w.GetAggression().GetValue() < 1, "%v is less than 1: write 1 or more",
			w.GetAggression().GetValue())
	}},
	{"duration", schema.Invalid, func(w *api.WarmupConfiguration) string { return wholeMilliseconds(w.GetDuration()) }},
	{"duration", schema.Required, func(w *api.WarmupConfiguration) string {
		return when(w.GetDuration() == nil, "say how long endpoints warm up")
	}},
}

func locality(at path, l *api.LocalityLoadBalancerSetting) []Problem {
	ways := 0
	for _, n := range []int{len(l.GetDistribute()), len(l.GetFailover()), len(l.GetFailoverPriority())} {
		ways += min(n, 1)
	}
	found := problem(at, schema.Forbidden, when(ways > 1, "keep one of distribute, failover and failoverPriority"))
	found = append(found, each(at.field("distribute"), l.GetDistribute(), distribute)...)
	found = append(found, each(at.field("failover"), l.GetFailover(), failover)...)
	origins := make([]string, len(l.GetDistribute()))
	for i, d := range l.GetDistribute() {
		origins[i] = d.GetFrom()
	}
	found = append(found, overlapping(origins, inOrder, func(i int) path { return at.field("distribute").item(i).field("from") })...)
	return append(found, texts(at.field("failoverPriority"), l.GetFailoverPriority(), priorityLabel)...)
}

func distribute(at path, d *api.LocalityLoadBalancerSetting_Distribute) []Problem {
	found := invalid(at.field("from"), localityName(d.GetFrom()))
	var total uint64
	found = append(found, entries(at.field("to"), d.GetTo(), func(at path, name string, weight uint32) []Problem {
		total += uint64(weight)
		found := invalid(at, localityName(name))
		return append(found, invalid(at, when(weight < 1 || weight > 100, "%d is not a share: write 1 to 100", weight))...)
	})...)
	targets := slices.Sorted(maps.Keys(d.GetTo()))
	found = append(found, overlapping(targets, withoutOrder, func(i int) path { return at.field("to").entry(targets[i]) })...)
	return append(found, invalid(at.field("to"), when(total != 100, "the shares are %d in total: they must be 100", total))...)
}

// localityName accepts REGION, REGION/ZONE and REGION/ZONE/SUBZONE; the last part
// may be *, for all.
func localityName(name string) string {
	parts := strings.Split(name, "/")
	wrong := len(parts) > 3
	for i, part := range parts {
		wrong = wrong || part == "" || strings.Contains(part, "*") && (part != "*" || i < len(parts)-1)
	}
	return when(wrong, "%q is not a locality: write REGION, REGION/ZONE or REGION/ZONE/SUBZONE; the last part may be *", name)
}

// within reports whether a locality is part of another one.
func within(a, b string) bool {
	b = strings.TrimSuffix(strings.TrimSuffix(b, "*"), "/")
	return a == b || b == "" || strings.HasPrefix(a, b+"/")
}

// inOrder reports whether a locality overlaps with an earlier one. The first that fits
// counts, so that a wider one with * may follow.
func inOrder(name, earlier string) bool {
	return within(name, earlier) || within(earlier, name) && !strings.HasSuffix(name, "*")
}

// withoutOrder reports whether two localities overlap.
func withoutOrder(a, b string) bool { return within(a, b) || within(b, a) }

// overlapping reports localities that overlap with an earlier one of the list.
func overlapping(names []string, overlap func(name, earlier string) bool, at func(int) path) []Problem {
	var found []Problem
	for i, name := range names {
		k := slices.IndexFunc(names[:i], func(earlier string) bool { return overlap(name, earlier) })
		if k >= 0 {
			found = append(found, problem(at(i), schema.DuplicateValue, when(true, "%q overlaps with %q: keep one of the two", name, names[k]))...)
		}
	}
	return found
}

// regions is a failover from one region to another.
type regions interface {
	GetFrom() string
	GetTo() string
}

func failover[T regions](at path, f T) []Problem {
	found := invalid(at.field("from"), region(f.GetFrom()))
	found = append(found, invalid(at.field("to"), region(f.GetTo()))...)
	return append(found, invalid(at, when(f.GetFrom() == f.GetTo(), "traffic of %q must fail over to another region", f.GetFrom()))...)
}

func region(name string) string {
	return when(name == "" || strings.ContainsAny(name, "/*"), "%q is not a region: write one without zones and *", name)
}

// priorityLabel accepts KEY and KEY=VALUE.
func priorityLabel(text string) string {
	key, value, _ := strings.Cut(text, "=")
	return when(len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0,
		"%q is not a label: write KEY or KEY=VALUE", text)
}

// byItself are labels by which zone-aware balancing always divides endpoints.
var byItself = setOf("topology.kubernetes.io/region topology.kubernetes.io/zone topology.istio.io/subzone")

func zoneAware(at path, z *api.ZoneAwareLoadBalancerSetting) []Problem {
	found := each(at.field("failover"), z.GetFailover(), failover)
	return append(found, texts(at.field("failoverPriority"), z.GetFailoverPriority(), func(text string) string {
		key, _, _ := strings.Cut(text, "=")
		return either(priorityLabel(text), when(byItself[key], "zone-aware balancing always goes by %s: remove it", key))
	})...)
}
