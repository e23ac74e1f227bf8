package route

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// setMirrors sends copies of requests. One for a destination that does not exist
// is excluded: requests themselves do not depend on their copies.
func (r *Rule) setMirrors(action *routev3.RouteAction, in *networking.HTTPRoute) {
	if in.GetMirror() != nil {
		percentage := 100.0
		if in.GetMirrorPercentage() != nil {
			percentage = in.GetMirrorPercentage().GetValue()
		} else if in.GetMirrorPercent() != nil {
			percentage = float64(in.GetMirrorPercent().GetValue())
		}
		r.mirror(action, in.GetMirror(), percentage)
	}
	for _, m := range in.GetMirrors() {
		percentage := 100.0
		if m.GetPercentage() != nil {
			percentage = m.GetPercentage().GetValue()
		}
		r.mirror(action, m.GetDestination(), percentage)
	}
}

func (r *Rule) mirror(action *routev3.RouteAction, to *networking.Destination, percentage float64) {
	if percentage <= 0 {
		return
	}
	copied, missing := r.target(to)
	if missing == "" && copied.Service.IsDynamic() {
		missing = fmt.Sprintf("the destination %s resolves the names of requests, and not those of copies", copied.Service.Key.Hostname)
	}
	if missing != "" {
		r.View.LeaveOut(r.missing("mirror: " + missing))
		return
	}
	action.RequestMirrorPolicies = append(action.RequestMirrorPolicies, &routev3.RouteAction_RequestMirrorPolicy{
		Cluster: copied.cluster(), RuntimeFraction: &corev3.RuntimeFractionalPercent{DefaultValue: virtualservice.Fraction(percentage)},
		DisableShadowHostSuffixAppend: true, // the host stays as it is, as with Istio
	})
}
