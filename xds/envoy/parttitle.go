package envoy

import (
	"fmt"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// PartTitle names a part of a resource for people. The empty part is the resource.
func PartTitle(t resource.Type, name, part string) string {
	whole := fmt.Sprintf("%s %q", t.Row().Title, name)
	of, divides := divided[t]
	if part == "" || !divides {
		return whole
	}
	return of.title(part) + " of " + whole
}

func hostTitle(name string) string { return fmt.Sprintf("virtual host %q", name) }

// shownNames bounds the names of servers in the title of a filter chain.
const shownNames = 3

// chainTitle reads what chainName wrote.
func chainTitle(name string) string {
	if name == defaultChain {
		return "the default filter chain"
	}
	match := &listenerv3.FilterChainMatch{}
	inner := strings.TrimSuffix(strings.TrimPrefix(name, chainOpens), chainCloses)
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(inner), match); err != nil {
		return name
	}
	var says []string
	if names := match.GetServerNames(); len(names) > 0 {
		text := strings.Join(names[:min(len(names), shownNames)], ", ")
		if more := len(names) - shownNames; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		says = append(says, "for "+text)
	}
	for _, block := range match.GetPrefixRanges() {
		says = append(says, fmt.Sprintf("to %s/%d", block.GetAddressPrefix(), block.GetPrefixLen().GetValue()))
	}
	if port := match.GetDestinationPort(); port != nil {
		says = append(says, fmt.Sprintf("to port %d", port.GetValue()))
	}
	if len(says) == 0 && match.GetTransportProtocol() == "tls" {
		says = append(says, "for TLS")
	}
	if len(match.GetApplicationProtocols()) > 0 {
		says = append(says, "for "+strings.Join(match.GetApplicationProtocols(), ", "))
	}
	return strings.TrimSuffix("filter chain "+strings.Join(says, " "), " ")
}
