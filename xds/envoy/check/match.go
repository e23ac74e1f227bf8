package check

import (
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
)

// maxMatches bounds the combinations of values that are compared: a chain with more of them is
// compared as a whole.
const maxMatches = 1 << 14

// validateMatches demands that no two filter chains match the same connections.
func validateMatches(chains []*listenerv3.FilterChain) error {
	for _, rule := range []func([]*listenerv3.FilterChain) error{validateServerNames, validateOverlaps, validateWholeMatches} {
		if err := rule(chains); err != nil {
			return err
		}
	}
	return nil
}

// validateServerNames demands that a wildcard is the first label. After it, Envoy accepts more of
// them, and takes them literally.
func validateServerNames(chains []*listenerv3.FilterChain) error {
	for i, chain := range chains {
		for _, name := range chain.GetFilterChainMatch().GetServerNames() {
			if strings.Contains(name, "*") && !strings.HasPrefix(name, "*.") {
				return fmt.Errorf("filter_chains[%d]: the server name %q has a wildcard that is not the first label", i, name)
			}
		}
	}
	return nil
}

// validateOverlaps compares each value that a chain lists apart, as Envoy does: chains for the
// names a, b and b, c have b in common.
func validateOverlaps(chains []*listenerv3.FilterChain) error {
	seen := map[string]bool{}
	for i, chain := range chains {
		criteria := criteriaOf(chain.GetFilterChainMatch())
		if len(seen)+combinations(criteria) > maxMatches {
			continue
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

// validateWholeMatches finds chains with equal matches, however many values they list.
func validateWholeMatches(chains []*listenerv3.FilterChain) error {
	seen := map[string]int{}
	for i, chain := range chains {
		match, err := proto.MarshalOptions{Deterministic: true}.Marshal(chain.GetFilterChainMatch())
		if err != nil {
			return fmt.Errorf("filter_chains[%d]: filter_chain_match: %w", i, err)
		}
		if first, twice := seen[string(match)]; twice {
			return fmt.Errorf("filter_chains[%d]: filter_chains[%d] has the same match", i, first)
		}
		seen[string(match)] = i
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
