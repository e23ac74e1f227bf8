package envoy

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Form identifies the content of one part of a resource: of a virtual host of a
// route configuration, or of a filter chain of a listener. The form without a
// part is of what is around the parts.
type Form struct {
	Part   string
	Digest [16]byte
}

// division is what depends on the type of resources that consist of parts.
type division struct {
	empty  func() proto.Message
	title  func(part string) string // for people
	causes func(*facet.Causes, proto.Message, []string, map[string][]federation.ObjectKey)
}

// divided has a row for each type with resource.InParts.
var divided = map[resource.Type]division{
	resource.RouteType:    {func() proto.Message { return &routev3.RouteConfiguration{} }, hostTitle, hostCauses},
	resource.ListenerType: {func() proto.Message { return &listenerv3.Listener{} }, chainTitle, chainCauses},
}

// Forms are those of a serialised resource, the one of what is around the parts
// first.
func Forms(t resource.Type, body []byte) ([]Form, error) {
	d, err := split(t, body)
	if err != nil {
		return nil, err
	}
	forms := []Form{formOf("", d.around)}
	for _, p := range d.parts {
		forms = append(forms, formOf(p.name, p.message))
	}
	return forms, nil
}

// Fallback is the target with another form in place of each part whose form is
// withheld: the one that was accepted before, else one that keeps requests from
// going elsewhere, else none. It returns the forms that are withheld, too. A nil
// message means that nothing of the target can be sent. Without an accepted
// resource, accepted is nil.
func Fallback(t resource.Type, target, accepted []byte, withheld func(Form) bool) (proto.Message, []Form, error) {
	now, err := split(t, target)
	if err != nil {
		return nil, nil, err
	}
	before := &splitResource{}
	if accepted != nil {
		before, err = split(t, accepted)
		if err != nil {
			return nil, nil, err
		}
	}
	if around := formOf("", now.around); withheld(around) {
		return nil, []Form{around}, nil
	}
	var kept []part
	var missing []Form
	for _, p := range now.parts {
		form, isNew := p.form(before, withheld)
		if !isNew {
			missing = append(missing, formOf(p.name, p.message))
		}
		if form != nil {
			kept = append(kept, part{p.name, form})
		}
	}
	m := now.join(kept)
	if len(missing) > 0 && check.Resource(m) != nil {
		return nil, missing, nil // such as a listener without any filter chain
	}
	return m, missing, nil
}

// splitResource is a resource and its parts, which around is without.
type splitResource struct {
	around proto.Message
	parts  []part
}

type part struct {
	name    string
	message proto.Message
}

func split(t resource.Type, body []byte) (*splitResource, error) {
	of, divides := divided[t]
	if !divides {
		return nil, fmt.Errorf("resources of type %s have no parts", t)
	}
	m := of.empty()
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.Row().Plural, err)
	}
	return splitMessage(m), nil
}

// splitMessage takes the parts out of the message.
func splitMessage(m proto.Message) *splitResource {
	d := &splitResource{around: m}
	switch m := m.(type) {
	case *routev3.RouteConfiguration:
		for _, host := range m.GetVirtualHosts() {
			d.parts = append(d.parts, part{host.GetName(), host})
		}
		m.VirtualHosts = nil
	case *listenerv3.Listener:
		for _, chain := range m.GetFilterChains() {
			d.parts = append(d.parts, part{chainName(chain), chain})
		}
		if m.GetDefaultFilterChain() != nil {
			d.parts = append(d.parts, part{defaultChain, m.GetDefaultFilterChain()})
		}
		m.FilterChains, m.DefaultFilterChain = nil, nil
	}
	return d
}

// formsByPart are the forms of a message, which stays as it is; that of what is around the parts is
// without a name.
func formsByPart(m proto.Message) map[string]Form {
	if m == nil {
		return nil
	}
	d := splitMessage(proto.Clone(m))
	forms := map[string]Form{"": formOf("", d.around)}
	for _, p := range d.parts {
		forms[p.name] = formOf(p.name, p.message)
	}
	return forms
}

// join puts parts into what was around them.
func (d *splitResource) join(parts []part) proto.Message {
	whole := proto.Clone(d.around)
	for _, p := range parts {
		switch m := p.message.(type) {
		case *routev3.VirtualHost:
			c := whole.(*routev3.RouteConfiguration)
			c.VirtualHosts = append(c.VirtualHosts, m)
		case *listenerv3.FilterChain:
			l := whole.(*listenerv3.Listener)
			if p.name == defaultChain {
				l.DefaultFilterChain = m
			} else {
				l.FilterChains = append(l.FilterChains, m)
			}
		}
	}
	return whole
}

// defaultChain is the name of the filter chain that matches what no other does.
const defaultChain = "default"

// chainName is what a filter chain matches: within a listener it is unique.
func chainName(chain *listenerv3.FilterChain) string {
	match := chain.GetFilterChainMatch()
	if match == nil {
		return chainOpens + chainCloses
	}
	return chainOpens + prototext.MarshalOptions{}.Format(match) + chainCloses
}

const chainOpens, chainCloses = "filter chain {", "}"

func formOf(name string, m proto.Message) Form {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return Form{Part: name} // cannot be: it was read from bytes
	}
	sum := sha256.Sum256(body)
	return Form{name, [16]byte(sum[:16])}
}

// form is the best form of the part that is not withheld; nil: none.
func (p part) form(before *splitResource, withheld func(Form) bool) (form proto.Message, isNew bool) {
	if !withheld(formOf(p.name, p.message)) {
		return p.message, true
	}
	for _, other := range p.others(before) {
		if !withheld(formOf(p.name, other)) {
			return other, false
		}
	}
	return nil, false
}

// others are the forms that may replace the part, the best first. They match
// what the part matches and nothing else, so that they fit between the others.
func (p part) others(before *splitResource) []proto.Message {
	switch m := p.message.(type) {
	case *routev3.VirtualHost:
		unavailable := resource.Everything(m.GetName(), &routev3.Route{
			Match: resource.AnyPath(),
			Action: resource.Refuse(http.StatusServiceUnavailable,
				"the proxy refused the routes of this host"),
		})
		unavailable.Domains = m.GetDomains()
		if i := before.index(p.name); i >= 0 {
			old := proto.Clone(before.parts[i].message).(*routev3.VirtualHost)
			old.Domains = m.GetDomains()
			return []proto.Message{old, unavailable}
		}
		return []proto.Message{unavailable}
	case *listenerv3.FilterChain:
		if i := before.index(p.name); i >= 0 {
			return []proto.Message{before.parts[i].message}
		}
		return narrowed(m, before)
	}
	return nil
}

func (d *splitResource) index(name string) int {
	return slices.IndexFunc(d.parts, func(p part) bool { return p.name == name })
}

// narrowed are accepted chains for some of the servers of the chain, which had
// other servers then, for these servers only.
func narrowed(m *listenerv3.FilterChain, before *splitResource) []proto.Message {
	var found []proto.Message
	for _, p := range before.parts {
		old := proto.Clone(p.message).(*listenerv3.FilterChain)
		if old.GetFilterChainMatch() == nil {
			continue
		}
		names := slices.DeleteFunc(old.GetFilterChainMatch().GetServerNames(), func(name string) bool {
			return !slices.Contains(m.GetFilterChainMatch().GetServerNames(), name)
		})
		old.FilterChainMatch.ServerNames = m.GetFilterChainMatch().GetServerNames()
		if len(names) > 0 && proto.Equal(old.GetFilterChainMatch(), m.GetFilterChainMatch()) {
			old.FilterChainMatch.ServerNames = names
			found = append(found, old)
		}
	}
	return found
}
