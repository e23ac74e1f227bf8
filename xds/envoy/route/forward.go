package route

import (
	"fmt"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// ForwardTo sends requests to the destinations of a route. Where its only one does
// not exist, it answers with 503 and says so. It returns those that exist.
func (r *Rule) forward(route *routev3.Route, in *networking.HTTPRoute) (targets []target, err error) {
	action := &routev3.RouteAction{}
	resource.LimitTime(action, in.GetTimeout())
	destinations := virtualservice.Weighted(in.GetRoute())
	switch len(destinations) {
	case 0:
		return nil, fmt.Errorf(".route: there is no destination with a weight")
	case 1:
		to, missing := r.target(destinations[0].GetDestination())
		if missing != "" {
			lacks(r, destinations[0].GetDestination(), missing)
			route.Action = resource.Refuse(http.StatusServiceUnavailable, missing)
			return nil, nil
		}
		targets = []target{to}
		action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: to.cluster()}
		action.HashPolicy = hashPoliciesOf(r.View, to)
		virtualservice.SetRouteHeaders(route, destinations[0].GetHeaders())
	default:
		action.ClusterSpecifier, targets = r.split(destinations)
		for _, to := range targets {
			action.HashPolicy = append(action.HashPolicy, hashPoliciesOf(r.View, to)...)
		}
	}
	route.Action = &routev3.Route_Route{Route: action}
	if err := virtualservice.SetRetries(action, in.GetRetries()); err != nil {
		return nil, err
	}
	r.setMirrors(action, in)
	if host := virtualservice.HostHeader(in.GetHeaders()); host != "" {
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: host}
	} else if host := virtualservice.HostHeader(destinations[0].GetHeaders()); host != "" && len(destinations) == 1 {
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: host}
	}
	return targets, virtualservice.SetRewrite(action, in.GetRewrite())
}

// split keeps the share of a destination that does not exist: its requests fail,
// those of others are not more than they should be.
func (r *Rule) split(destinations []*networking.HTTPRouteDestination) (*routev3.RouteAction_WeightedClusters, []target) {
	out := &routev3.WeightedCluster{}
	scale := virtualservice.ScaleOf(destinations)
	var targets []target
	for _, d := range destinations {
		cluster := resource.BlackHoleCluster
		if to, missing := r.shareTarget(d); missing != "" {
			lacks(r, d.GetDestination(), missing)
		} else {
			cluster = to.cluster()
			targets = append(targets, to)
		}
		w := &routev3.WeightedCluster_ClusterWeight{Name: cluster, Weight: wrapperspb.UInt32(max(uint32(d.GetWeight())/scale, 1))}
		virtualservice.SetWeightHeaders(w, d.GetHeaders())
		if host := virtualservice.HostHeader(d.GetHeaders()); host != "" {
			w.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: host}
		}
		out.Clusters = append(out.Clusters, w)
	}
	return &routev3.RouteAction_WeightedClusters{WeightedClusters: out}, targets
}

// shareTarget is target for a share of the requests.
func (r *Rule) shareTarget(d *networking.HTTPRouteDestination) (to target, missing string) {
	to, missing = r.target(d.GetDestination())
	if missing == "" && to.Service.IsDynamic() && virtualservice.HostHeader(d.GetHeaders()) != "" {
		missing = fmt.Sprintf("the destination %s resolves the host of the request before its share is known: change the host for the whole route", to.Service.Key.Hostname)
	}
	return to, missing
}

// lacks reports that the destination is missing. Of one that its source refused, that has reported it.
func lacks(r *Rule, d *networking.Destination, why string) {
	if d.GetHost() != federation.RefusedHost {
		r.View.LeaveOut(r.missing(why))
	}
}

func (r *Rule) missing(why string) resource.Reason {
	return resource.Reason{Code: resource.ReasonNoDestination, Cause: r.Object.Subject(), Message: r.Object.SubjectTitle() + ": " + why}
}

// target is a destination that exists.
type target struct {
	service.ServedPort
	subset string
}

func (t target) cluster() string {
	return resource.SubsetClusterName(t.Service.Key.Hostname, t.Port.Number, t.subset)
}

// hashPoliciesOf is what of a request decides about its endpoint at the target.
func hashPoliciesOf(v *facet.View, t target) []*routev3.RouteAction_HashPolicy {
	return hashPolicies(v, t.Service, t.Port.Number, t.subset)
}

// target finds a destination; where it does not exist, missing says why. A
// destination without a port means the only port of the service, else the port
// that is routed. An alias means the service of which it is another name.
func (r *Rule) target(d *networking.Destination) (to target, missing string) {
	host := federation.ResolveHost(d.GetHost(), r.Object.Key.Namespace)
	owner, missing := r.ownerAtHost(host, d)
	if real, alias := service.AliasAmong(r.View, host, owner); alias != nil {
		owner, missing = r.ownerAtHost(real, d)
		if owner.Service != nil && service.IsAlias(r.View, owner.Service) {
			return to, fmt.Sprintf("the destination %s leads over %s to other names only", host, real)
		}
	}
	if missing != "" {
		return to, missing
	}
	if d.GetSubset() != "" && !r.View.HasSubset(owner.Service, d.GetSubset()) {
		return to, fmt.Sprintf("no DestinationRule that this proxy sees gives the destination %s a subset %q", host, d.GetSubset())
	}
	to = target{owner, d.GetSubset()}
	reportUnlisted(r, to)
	return to, r.unresolved(to)
}

// reportUnlisted reports a destination of which a gateway knows no address: its clients dialed the gateway.
func reportUnlisted(r *Rule, to target) {
	if len(r.Gateways) == 0 || !service.IsUnlisted(to.Service) {
		return
	}
	host := to.Service.Key.Hostname
	why := fmt.Sprintf("gateways know no address of the destination %s, which has the resolution NONE: what is sent there fails", host)
	if to.Port.Target != 0 {
		why += fmt.Sprintf(", and targetPort of port %d has no effect", to.Port.Number)
	}
	r.View.LeaveOut(r.missing(why + "; write the resolution STATIC or DNS"))
}

// Datagrams is where datagrams go: Envoy sends those of a listener to one cluster. Of several
// destinations, the first with a weight gets all of them. Where it does not exist, nothing is returned.
func (r *Rule) Datagrams(destinations []*networking.RouteDestination) (to service.ServedPort) {
	of := slices.DeleteFunc(slices.Clone(destinations),
		func(d *networking.RouteDestination) bool { return len(destinations) > 1 && d.GetWeight() <= 0 })
	if len(of) == 0 {
		r.View.LeaveOut(r.missing("a route for datagrams has no destination with a weight"))
		return to
	}
	d := of[0].GetDestination()
	host, number := federation.ResolveHost(d.GetHost(), r.Object.Key.Namespace), r.Port
	if d.GetPort() != nil {
		number = uint16(min(d.GetPort().GetNumber(), 1<<16-1))
	}
	to = service.DatagramOwner(r.View, service.SeenAt(r.View, host), number)
	if to.Service == nil {
		lacks(r, d, fmt.Sprintf("the destination %s has no UDP port %d that this proxy sees", host, number))
	}
	if len(of) > 1 {
		r.View.LeaveOut(resource.Reason{
			Code: resource.ReasonRuleIgnored, Cause: r.Object.Subject(),
			Message: fmt.Sprintf("%s: datagrams of one port go to one destination, %s; the others get none", r.Object.SubjectTitle(), host),
		})
	}
	return to
}

// ownerAtHost is the service of the hostname that has the destination's port.
func (r *Rule) ownerAtHost(host federation.Hostname, d *networking.Destination) (owner service.ServedPort, missing string) {
	services := service.SeenAt(r.View, host)
	if len(services) == 0 {
		return owner, fmt.Sprintf("the destination %s is not a service that this proxy sees", host)
	}
	number := r.Port
	if d.GetPort() != nil {
		number = uint16(min(d.GetPort().GetNumber(), 1<<16-1))
	} else if numbers := service.PortNumbers(services); len(numbers) == 1 {
		number = numbers[0]
	}
	owner, _ = service.OwnerAmong(r.View, services, number)
	if owner.Service == nil {
		return owner, fmt.Sprintf("the destination %s has no port %d; name one of its ports", host, number)
	}
	return owner, ""
}
