package envoyfilter

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Problem is a patch, or a part of one, that never has an effect.
type Problem struct{ Path, Message string }

// Problems finds the patches of an EnvoyFilter that no proxy gets.
func Problems(spec *api.EnvoyFilter) []Problem {
	var found []Problem
	for i, p := range spec.GetConfigPatches() {
		patch := Patch{Index: i, Spec: p}
		if _, err := read(patch); err != nil {
			found = append(found, Problem{patch.Field(), err.Error() + "; this patch has no effect"})
		}
	}
	return found
}

// understood reports what a patch says that the hub does not do. Matching more than its author
// meant would be worse than nothing.
func (j *job) understood() error {
	match := j.Spec.GetMatch()
	if !slices.Contains(j.subject.operations, j.op) {
		return fmt.Errorf("patch.operation: %s is not for %s", j.op, j.Spec.GetApplyTo())
	}
	if err := j.placed(); err != nil {
		return err
	}
	switch {
	case match.GetContext() == api.EnvoyFilter_WAYPOINT || match.GetWaypoint() != nil:
		return fmt.Errorf("match: there are no waypoints")
	case match.GetListener().GetPortName() != "":
		return fmt.Errorf("match.listener.portName is not supported, nor implemented by Istio: write the portNumber")
	case j.needsName() && !j.named():
		to := j.Spec.GetApplyTo()
		return fmt.Errorf("match: %s of %s needs the name of the filter in match.listener.%s", j.op, to, filterNames[to])
	}
	return nil
}

// filterNames are the fields below match.listener that name a filter.
var filterNames = map[api.EnvoyFilter_ApplyTo]string{
	api.EnvoyFilter_LISTENER_FILTER: "listenerFilter",
	api.EnvoyFilter_NETWORK_FILTER:  "filterChain.filter.name",
	api.EnvoyFilter_HTTP_FILTER:     "filterChain.filter.subFilter.name",
}

// needsName reports whether the patch is for filters that its match names, as in Istio: without a
// name it would change filters without which a listener does not work.
func (j *job) needsName() bool {
	to := j.Spec.GetApplyTo()
	switch j.op {
	case replace, remove:
		return filterNames[to] != ""
	case merge, mergeReplace:
		return to == api.EnvoyFilter_LISTENER_FILTER
	}
	return false
}

// named reports whether the match names an item of the list that is patched.
func (j *job) named() bool {
	listener := j.Spec.GetMatch().GetListener()
	filter := listener.GetFilterChain().GetFilter()
	route := j.Spec.GetMatch().GetRouteConfiguration().GetVhost().GetRoute()
	switch j.Spec.GetApplyTo() {
	case api.EnvoyFilter_LISTENER_FILTER:
		return listener.GetListenerFilter() != ""
	case api.EnvoyFilter_NETWORK_FILTER:
		return filter.GetName() != ""
	case api.EnvoyFilter_HTTP_FILTER:
		return filter.GetSubFilter().GetName() != ""
	case api.EnvoyFilter_HTTP_ROUTE:
		return route.GetName() != "" || route.GetAction() != api.EnvoyFilter_RouteConfigurationMatch_RouteMatch_ANY
	}
	return false
}

// allowed reports a value that would take the place of something of the hub's own.
func (j *job) allowed() error {
	if j.op != add {
		return nil
	}
	switch v := j.value.(type) {
	case *clusterv3.Cluster:
		complete(v)
		if v.GetType() == clusterv3.Cluster_EDS {
			return fmt.Errorf("patch.value.type: the hub has no endpoints for a cluster that is added: use STATIC, STRICT_DNS or another type")
		}
		return ownName(v.GetName())
	case *listenerv3.Listener:
		return ownName(v.GetName())
	}
	return nil
}

// ownName reports names of the forms that the hub gives.
func ownName(name string) error {
	if err := resource.ValidateName(name); err != nil {
		return fmt.Errorf("patch.value.name: %w", err)
	}
	reserved := []string{
		resource.PassthroughCluster, resource.BlackHoleCluster, resource.InboundPassthroughCluster, resource.VirtualInbound,
		resource.VirtualOutbound, resource.NamesListener,
	}
	before, _, byPort := strings.Cut(name, "_")
	_, err := netip.ParseAddr(before)
	isListener := byPort && err == nil
	if slices.Contains(reserved, name) || strings.Contains(name, "|") || strings.HasPrefix(name, "outbound_.") ||
		strings.HasPrefix(name, "pod_") || strings.HasPrefix(name, "inbound_") || isListener {
		return fmt.Errorf("patch.value.name: %q is a name that the hub gives itself: use another", name)
	}
	return nil
}
