package envoyfilter

import (
	"fmt"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// isEntry reports whether the listener gets connections to any port. The port that a patch
// names is then that of a filter chain.
func isEntry(l *listenerv3.Listener) bool {
	return l.GetName() == resource.VirtualInbound || l.GetName() == resource.VirtualOutbound
}

// meetsListener reports whether the patch is about the listener, or about something in it.
func (j *job) meetsListener(l *listenerv3.Listener) bool {
	match := j.Spec.GetMatch().GetListener()
	if match.GetName() != "" && match.GetName() != l.GetName() {
		return false
	}
	if match.GetPortNumber() == 0 || isEntry(l) && j.Spec.GetApplyTo() != api.EnvoyFilter_LISTENER {
		return true
	}
	return l.GetAddress().GetSocketAddress().GetPortValue() == match.GetPortNumber()
}

// meetsChain reports whether the patch is about the filter chain, or about something in it.
func (j *job) meetsChain(l *listenerv3.Listener, chain *listenerv3.FilterChain) bool {
	match := j.Spec.GetMatch().GetListener()
	want, has := match.GetFilterChain(), chain.GetFilterChainMatch()
	port := has.GetDestinationPort().GetValue()
	if isEntry(l) && match.GetPortNumber() != 0 && port != match.GetPortNumber() {
		return false
	}
	for protocol := range strings.SplitSeq(want.GetApplicationProtocols(), ",") {
		if protocol != "" && !slices.Contains(has.GetApplicationProtocols(), protocol) {
			return false
		}
	}
	return (want.GetName() == "" || want.GetName() == chain.GetName()) &&
		(want.GetSni() == "" || slices.Contains(has.GetServerNames(), want.GetSni())) &&
		(want.GetTransportProtocol() == "" || want.GetTransportProtocol() == has.GetTransportProtocol()) &&
		(want.GetDestinationPort() == 0 || want.GetDestinationPort() == port)
}

func patchListener(j *job, m proto.Message) (proto.Message, bool, error) {
	l, is := m.(*listenerv3.Listener)
	if !is || j.op == add || !j.meetsListener(l) {
		return m, false, nil
	}
	if j.op == remove {
		return nil, true, nil
	}
	return l, true, j.merge(l)
}

func patchChains(j *job, m proto.Message) (proto.Message, bool, error) {
	l, is := m.(*listenerv3.Listener)
	if !is || !j.meetsListener(l) {
		return m, false, nil
	}
	meets := func(chain *listenerv3.FilterChain) bool { return j.meetsChain(l, chain) }
	chains, matched, err := edit(j, list[*listenerv3.FilterChain]{items: l.GetFilterChains(), match: meets, end: len(l.GetFilterChains())})
	if err != nil {
		return nil, matched, err
	}
	l.FilterChains = chains
	if last := l.GetDefaultFilterChain(); last != nil && j.op != add && meets(last) {
		matched = true
		if j.op == remove {
			l.DefaultFilterChain = nil
		} else if err := j.merge(last); err != nil {
			return nil, true, err
		}
	}
	return l, matched, nil
}

func patchListenerFilters(j *job, m proto.Message) (proto.Message, bool, error) {
	l, is := m.(*listenerv3.Listener)
	if !is || !j.meetsListener(l) {
		return m, false, nil
	}
	name := j.Spec.GetMatch().GetListener().GetListenerFilter()
	filters, matched, err := edit(j, list[*listenerv3.ListenerFilter]{
		items: l.GetListenerFilters(), named: j.named(), end: len(l.GetListenerFilters()),
		match: func(f *listenerv3.ListenerFilter) bool { return isNamed(f, name) },
	})
	l.ListenerFilters = filters
	return l, matched, err
}

// eachChain has the function change the chains that the patch is about.
func (j *job) eachChain(m proto.Message, change func(*listenerv3.FilterChain) (bool, error)) (proto.Message, bool, error) {
	l, is := m.(*listenerv3.Listener)
	if !is || !j.meetsListener(l) {
		return m, false, nil
	}
	found := false
	for _, chain := range chainsOf(l) {
		if !j.meetsChain(l, chain) {
			continue
		}
		matched, err := change(chain)
		if err != nil {
			return nil, true, err
		}
		found = found || matched
	}
	return l, found, nil
}

func chainsOf(l *listenerv3.Listener) []*listenerv3.FilterChain {
	if l.GetDefaultFilterChain() == nil {
		return l.GetFilterChains()
	}
	return append(slices.Clip(l.GetFilterChains()), l.GetDefaultFilterChain())
}

func patchNetworkFilters(j *job, m proto.Message) (proto.Message, bool, error) {
	name := j.Spec.GetMatch().GetListener().GetFilterChain().GetFilter().GetName()
	return j.eachChain(m, func(chain *listenerv3.FilterChain) (matched bool, err error) {
		chain.Filters, matched, err = edit(j, list[*listenerv3.Filter]{
			items: chain.GetFilters(), named: j.named(), end: end(j, chain.GetFilters(), isTerminal),
			match: func(f *listenerv3.Filter) bool { return isNamed(f, name) },
		})
		return matched, err
	})
}

func patchHTTPFilters(j *job, m proto.Message) (proto.Message, bool, error) {
	want := j.Spec.GetMatch().GetListener().GetFilterChain().GetFilter()
	return j.eachManager(m, want.GetName(), func(manager *hcmv3.HttpConnectionManager) (matched bool, err error) {
		manager.HttpFilters, matched, err = edit(j, list[*hcmv3.HttpFilter]{
			items: manager.GetHttpFilters(), named: j.named(), end: end(j, manager.GetHttpFilters(), isRouter),
			match: func(f *hcmv3.HttpFilter) bool { return isNamed(f, want.GetSubFilter().GetName()) },
		})
		return matched, err
	})
}

// eachManager has the function change the managers of HTTP connections in the chains that the
// patch is about.
func (j *job) eachManager(m proto.Message, name string, change func(*hcmv3.HttpConnectionManager) (bool, error)) (proto.Message,
	bool, error,
) {
	return j.eachChain(m, func(chain *listenerv3.FilterChain) (found bool, err error) {
		for _, f := range chain.GetFilters() {
			if !isNamed(f, name) || !f.GetTypedConfig().MessageIs((*hcmv3.HttpConnectionManager)(nil)) {
				continue
			}
			matched, err := changePacked(f.GetTypedConfig(), change)
			if err != nil {
				return true, err
			}
			found = found || matched
		}
		return found, nil
	})
}

// changePacked changes a packed manager.
func changePacked(config *anypb.Any, change func(*hcmv3.HttpConnectionManager) (bool, error)) (bool, error) {
	manager := &hcmv3.HttpConnectionManager{}
	if err := config.UnmarshalTo(manager); err != nil {
		return false, fmt.Errorf("unpacking the HTTP connection manager: %w", err)
	}
	matched, err := change(manager)
	if err != nil || !matched {
		return matched, err
	}
	return true, anypb.MarshalFrom(config, manager, proto.MarshalOptions{Deterministic: true})
}
