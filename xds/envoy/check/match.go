package check

import (
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// maxMatches bounds the connections that are compared: what is beyond them is left to Envoy.
const maxMatches = 1 << 20

// validateMatches demands that no two filter chains match the same connections. Envoy takes each
// value that a chain lists apart: chains for the names a, b and b, c have b in common.
func validateMatches(chains []*listenerv3.FilterChain) error {
	seen := map[string]bool{}
	for i, chain := range chains {
		match := chain.GetFilterChainMatch()
		for _, name := range match.GetServerNames() {
			if strings.Contains(strings.TrimPrefix(name, "*."), "*") {
				return fmt.Errorf("filter_chains[%d]: the server name %q has a wildcard that is not the first label", i, name)
			}
		}
		criteria := criteriaOf(match)
		if len(seen)+combinations(criteria) > maxMatches {
			return nil
		}
		for connections := range eachOf(criteria) {
			if seen[connections] {
				if connections == "" {
					connections = "every connection"
				}
				return fmt.Errorf("filter_chains[%d]: another chain has the same match: %s", i, connections)
			}
			seen[connections] = true
		}
	}
	return nil
}

// criteriaOf are the values for each criterion of the match, in words.
func criteriaOf(m *listenerv3.FilterChainMatch) [][]string {
	var port, transport, source []string
	if m.GetDestinationPort() != nil {
		port = []string{strconv.FormatUint(uint64(m.GetDestinationPort().GetValue()), 10)}
	}
	if m.GetTransportProtocol() != "" {
		transport = []string{m.GetTransportProtocol()}
	}
	if m.GetSourceType() != listenerv3.FilterChainMatch_ANY {
		source = []string{m.GetSourceType().String()}
	}
	var criteria [][]string
	add := func(what string, values []string) {
		if len(values) == 0 {
			return
		}
		words := make([]string, len(values))
		for i, value := range values {
			words[i] = what + " " + value
		}
		criteria = append(criteria, words)
	}
	add("port", port)
	add("address", blocks(m.GetPrefixRanges()))
	add("server name", m.GetServerNames())
	add("transport", transport)
	add("protocol", m.GetApplicationProtocols())
	add("direct source", blocks(m.GetDirectSourcePrefixRanges()))
	add("source type", source)
	add("source", blocks(m.GetSourcePrefixRanges()))
	add("source port", numbers(m.GetSourcePorts()))
	return criteria
}

// blocks are the ranges without the bits beyond their length, which Envoy does not look at.
func blocks(ranges []*corev3.CidrRange) []string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = fmt.Sprintf("%s/%d", r.GetAddressPrefix(), r.GetPrefixLen().GetValue())
		if addr, err := netip.ParseAddr(r.GetAddressPrefix()); err == nil {
			if block, err := addr.Prefix(int(min(r.GetPrefixLen().GetValue(), 128))); err == nil {
				texts[i] = block.String()
			}
		}
	}
	return texts
}

func numbers(ports []uint32) []string {
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.FormatUint(uint64(port), 10)
	}
	return texts
}

// combinations is how many there are, at most more than maxMatches.
func combinations(criteria [][]string) int {
	n := 1
	for _, values := range criteria {
		n = min(n*len(values), maxMatches+1)
	}
	return n
}

// eachOf yields every combination of one value for each criterion.
func eachOf(criteria [][]string) iter.Seq[string] {
	return func(yield func(string) bool) { combine("", criteria, yield) }
}

func combine(before string, criteria [][]string, yield func(string) bool) bool {
	if len(criteria) == 0 {
		return yield(before)
	}
	if before != "" {
		before += ", "
	}
	for _, value := range criteria[0] {
		if !combine(before+value, criteria[1:], yield) {
			return false
		}
	}
	return true
}
