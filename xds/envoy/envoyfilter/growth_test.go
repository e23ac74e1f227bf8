package envoyfilter

import (
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// large is a patch that puts metadata of that many KiB into what it is applied to.
func large(applyTo, match string, kib int) string {
	return fmt.Sprintf("- {applyTo: %s, match: %s, patch: {operation: MERGE, value: {metadata: {filter_metadata: {k%d: {v: %s}}}}}}\n",
		applyTo, match, kib, strings.Repeat("x", kib<<10))
}

func outboundListener(chains int) *listenerv3.Listener {
	l := &listenerv3.Listener{Name: "10.96.0.1_3306", Address: resource.SocketAddress("10.96.0.1", 3306)}
	for i := range chains {
		match := &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(3306 + i))}
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: match,
			Filters:          []*listenerv3.Filter{resource.TCPProxy("db")},
		})
	}
	return l
}

// What one patch adds to every cluster, route and filter chain is bounded; what names a
// resource is not bounded by others.
func TestK73WhatPatchesAddToManyResourcesIsBounded(t *testing.T) {
	const named, filters = "{cluster: {name: 'outbound|80|v1|web.shop'}}", "{listener: {name: 10.96.0.1_3306}}"
	for name, c := range map[string]struct {
		before  proto.Message
		patches string
		out     string // the indexes of the patches that are excluded
	}{
		"small ones":  {webCluster(), large("CLUSTER", "{}", 7) + large("CLUSTER", "{}", 8), ""},
		"a large one": {webCluster(), large("CLUSTER", "{}", 17), "0"},
		"too much together": {webCluster(), large("CLUSTER", "{}", 9) + large("CLUSTER", "{context: ANY}", 10) +
			large("CLUSTER", "{}", 4), "1"},
		"of a named cluster":       {webCluster(), large("CLUSTER", named, 200), ""},
		"of a service":             {webCluster(), large("CLUSTER", "{cluster: {service: web.shop}}", 200), ""},
		"of all with a port":       {webCluster(), large("CLUSTER", "{cluster: {portNumber: 80}}", 17), "0"},
		"beside a named one":       {webCluster(), large("CLUSTER", named, 200) + large("CLUSTER", "{}", 15) + large("CLUSTER", "{}", 2), "2"},
		"of all virtual hosts":     {webRoutes(), large("VIRTUAL_HOST", "{}", 23), ""},
		"too large for them":       {webRoutes(), large("VIRTUAL_HOST", "{}", 25), "0"},
		"of one of them":           {webRoutes(), large("VIRTUAL_HOST", "{routeConfiguration: {vhost: {name: 'web.shop:80'}}}", 200), ""},
		"of listeners":             {outboundListener(1), large("LISTENER", "{}", 63), ""},
		"too large for listeners":  {outboundListener(1), large("LISTENER", "{}", 65), "0"},
		"of listeners with chains": {outboundListener(3), large("LISTENER", "{}", 190), ""},
		"of a named listener":      {outboundListener(1), large("LISTENER", filters, 200), ""},
		"of what there is once":    {inboundListener(), large("LISTENER", "{}", 200), ""},
		"of what is removed":       {webCluster(), large("CLUSTER", "{}", 17) + "- {applyTo: CLUSTER, patch: {operation: REMOVE}}\n", ""},
		"less instead of more later": {
			webCluster(),
			large("CLUSTER", "{}", 12) + "- {applyTo: CLUSTER, patch: {operation: MERGE, value: {alt_stat_name: a}}}\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, outcomes := Patched(c.before, patchesIn(t, c.patches))
			var out []string
			for i, o := range outcomes {
				if o.Err != nil {
					out = append(out, fmt.Sprint(i))
				}
				if !o.Matched {
					t.Errorf("patch %d matches nothing", i)
				}
			}
			if got := strings.Join(out, " "); got != c.out {
				t.Errorf("excluded: %q, want %q: %+v", got, c.out, errorsOf(outcomes))
			}
		})
	}
}

func errorsOf(outcomes []Outcome) (all []error) {
	for _, o := range outcomes {
		all = append(all, o.Err)
	}
	return all
}

// A proxy with many clusters gets a small multiple of what it had, whatever the patches.
func TestK73AllClustersTogetherGrowInProportion(t *testing.T) {
	patches := patchesIn(t, large("CLUSTER", "{}", 250)+large("CLUSTER", "{}", 5)+large("CLUSTER", "{}", 6)+large("CLUSTER", "{}", 7))
	total, clusters := 0, 100
	for i := range clusters {
		c := proto.CloneOf(webCluster())
		c.Name = fmt.Sprintf("outbound|80||s%d.shop", i)
		now, _ := Patched(c, patches)
		total += proto.Size(now.(*clusterv3.Cluster))
	}
	if limit := clusters * (growthOfCluster + proto.Size(webCluster()) + 100); total > limit {
		t.Errorf("%d clusters have %d bytes together, want at most %d", clusters, total, limit)
	}
}
