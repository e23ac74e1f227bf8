package node

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// The filters of Istio's proxies, each by the name of its extension and by that which Istio gives it. Proxies that have the
// one for connections (envoy.filters.network.metadata_exchange) alone are too old for the one for requests.
var (
	statsExtensions    = []string{"envoy.filters.http.istio_stats", "istio.stats"}
	metadataExtensions = []string{"envoy.filters.http.peer_metadata", "istio.metadata_exchange"}
)

// hasStats reports whether a proxy that is built with the extensions can count as Istio does, and learn with whom
// it speaks.
func hasStats(extensions []*corev3.Extension) bool {
	has := func(names []string) bool {
		return slices.ContainsFunc(extensions, func(e *corev3.Extension) bool { return slices.Contains(names, e.GetName()) })
	}
	return has(statsExtensions) && has(metadataExtensions)
}

// markDelimiters notes in the facets of a node that names in its statistics have delimiters: those of clusters, and of
// listeners for requests.
func markDelimiters(n Node, _ effectiveConfig, facets []Facet) {
	if !n.Delimited {
		return
	}
	for i := range facets {
		facets[i].Delimited = facets[i].Has(delimits)
	}
}

// markStats notes in the facets of a node that its proxies count as those of Istio do. What is the same for every proxy, and answers to DNS
// requests, do not depend on it.
func markStats(n Node, _ effectiveConfig, facets []Facet) {
	if !n.Stats {
		return
	}
	for i := range facets {
		facets[i].Stats = facets[i].Has(counted)
	}
}
