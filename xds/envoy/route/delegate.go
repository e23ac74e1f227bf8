package route

import (
	"cmp"
	"fmt"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// delegated are the routes of the object to which http[i] delegates, each merged with that
// route, and the rule in whose namespace their destinations are. As in Istio, a delegate
// has no hosts and does not delegate itself, and routes that contradict the root's are excluded.
func (r *Rule) delegated(i int, in *networking.HTTPRoute) (*Rule, []*networking.HTTPRoute) {
	namespace := cmp.Or(in.GetDelegate().GetNamespace(), r.Object.Key.Namespace)
	key := federation.VirtualServiceKind.Key(namespace, in.GetDelegate().GetName())
	o, found := r.View.Reader.Object(key)
	var spec *networking.VirtualService
	if found {
		spec, found = o.Spec.(*networking.VirtualService)
	}
	switch {
	case !found:
		r.View.LeaveOut(r.missing(fmt.Sprintf("http[%d] delegates to %s, which does not exist", i, key)))
		return r, nil
	case len(spec.GetHosts()) > 0:
		r.View.LeaveOut(r.missing(fmt.Sprintf("http[%d] delegates to %s, which has hosts of its own: only objects without hosts can be delegated to", i, key)))
		return r, nil
	case !virtualservice.VisibleFrom(r.Object.Key.Namespace, o, spec, r.View.Reader):
		r.View.LeaveOut(r.missing(fmt.Sprintf("http[%d] delegates to %s, which is not exported to namespace %s", i, key, r.Object.Key.Namespace)))
		return r, nil
	}
	r.delegates = append(r.delegates, o)
	of := &Rule{View: r.View, Object: o, Spec: spec, Port: r.Port, Gateways: r.Gateways, TLS: r.TLS, byPort: r.byPort, root: r.Object}
	var merged []*networking.HTTPRoute
	for j, inner := range spec.GetHttp() {
		why := "delegates cannot delegate"
		if inner.GetDelegate() == nil {
			route, ok := virtualservice.Merge(in, inner, o.Key.Namespace)
			if ok {
				merged = append(merged, route)
				continue
			}
			why = fmt.Sprintf("its matches are not within those of http[%d] of %s", i, r.Object.Key)
		}
		r.View.LeaveOut(resource.Reason{
			Code: resource.ReasonRuleIgnored, Cause: o.Key, Related: []federation.ObjectKey{r.Object.Key},
			Message: fmt.Sprintf("%s: http[%d] has no effect: %s", o.Key, j, why),
		})
	}
	return of, merged
}
