package envoy

import (
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// The codes of explanations that are not reasons of Build.
const (
	ExplainedDirect      = "DIRECT"       // the proxy sends to the endpoint's own address
	ExplainedGateway     = "GATEWAY"      // the proxy sends to the gateways of its network
	ExplainedPassthrough = "PASSTHROUGH"  // callers choose the endpoint themselves
	ExplainedNoPort      = "NO_PORT"      // the service has no such port for TCP
	ExplainedNotVisible  = "NOT_VISIBLE"  // the service is not exported to the proxy's namespace
	ExplainedNotImported = "NOT_IMPORTED" // the proxy's Sidecar does not import the service
	ExplainedNotBuilt    = "NOT_BUILT"    // no resource was built for the service
	ExplainedAlias       = "ALIAS"        // the service is another name of one that has the endpoints
)

// Explain says which service a hostname and a port mean for the proxy (nil: none), and
// for each endpoint of the services of the hostname whether the proxy sends to it when it
// is called at that port, and why. It builds what the proxy is given and tells the
// reasons for it; nothing but the arguments is read.
func Explain(
	n node.Node, host federation.Hostname, port uint16, s *federation.Snapshot,
) (reached *federation.Service, all []federation.Explanation) {
	v := node.ViewOf(n, s.Read())
	e := explainer{node: v.Node(), snapshot: s, view: v}
	for _, of := range s.ByHostname(host) {
		none, served := e.served(of, port)
		if served.Service == nil {
			all = append(all, each(of, func(federation.Explanation) federation.Explanation { return none })...)
			continue
		}
		if reached == nil {
			reached = of
		}
		all = append(all, e.built(served)...)
	}
	return reached, all
}

type explainer struct {
	node     node.Node
	snapshot *federation.Snapshot
	view     node.View
}

// served is the port at which the proxy reaches the service. The zero one: none says why it does not.
func (e explainer) served(s *federation.Service, port uint16) (none federation.Explanation, served service.ServedPort) {
	number, isTCP := service.TCPPort(s, port)
	none.Via = federation.ViaNone
	owner := service.ServedPort{}
	if isTCP {
		owner, _ = service.FirstOwner(e.snapshot.ByHostname(s.Key.Hostname), port, e.node.Namespace, e.sees)
	}
	target, isAlias := e.read().AliasTarget(s, e.sees)
	switch {
	case isAlias && !e.node.GRPC:
		none.Code, none.Message = ExplainedAlias,
			fmt.Sprintf("service %s is another name of %s, whose endpoints the proxy has; explain that", s.Key, target)
	case !isTCP:
		none.Code, none.Message = ExplainedNoPort, fmt.Sprintf("service %s has no TCP port %d", s.Key, port)
	case !s.VisibleFrom(e.node.Namespace):
		none.Code, none.Message = ExplainedNotVisible, fmt.Sprintf("service %s is not exported to namespace %q", s.Key, e.node.Namespace)
	case !e.sees(s) || !e.view.Exposes(s, port):
		none.Code, none.Message = ExplainedNotImported,
			fmt.Sprintf("the Sidecar for the proxy does not import service %s at port %d", s.Key, port)
		if o := node.SidecarOf(e.node, e.read(), e.snapshot.Mesh().Root()); o != nil {
			none.Cause = o.Key
		}
	case owner.Service != s:
		r := service.HostnameTaken(owner, s, e.node.Namespace)
		none.Code, none.Message = r.Code, r.Message
	case e.node.Type == node.Sidecar && !e.node.GRPC && owner.Port.Protocol.IsHTTP() && federation.TakenBySidecars(port, e.node.Agent):
		none.Code, none.Message = resource.ReasonPortReserved,
			fmt.Sprintf("the proxy, or Istio's agent beside it, listens at port %d itself: requests to service %s there are not routed; use another port",
				port, s.Key)
	default:
		served = service.ServedPort{Service: s, Port: number}
	}
	return none, served
}

func (e explainer) read() *federation.Reader { return e.snapshot.Read().For(e.node.Cluster) }

// sees reports whether the proxy knows of the service.
func (e explainer) sees(s *federation.Service) bool {
	return e.view.Sees(s)
}

// each makes an explanation for every endpoint of the service.
func each(s *federation.Service, explain func(federation.Explanation) federation.Explanation) []federation.Explanation {
	var all []federation.Explanation
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			given := federation.Explanation{Shard: group.Shard, Endpoint: &group.Endpoints[i]}
			now := explain(given)
			now.Shard, now.Endpoint = given.Shard, given.Endpoint
			all = append(all, now)
		}
	}
	return all
}

// built explains what the proxy is given for the port.
func (e explainer) built(p service.ServedPort) []federation.Explanation {
	v := e.build(resource.EndpointType, p)
	if v == nil {
		v = e.build(resource.ClusterType, p)
	}
	none := federation.Explanation{Via: federation.ViaNone, Code: ExplainedNotBuilt, Message: "the proxy has no cluster for the service"}
	if v == nil {
		return each(p.Service, func(federation.Explanation) federation.Explanation { return none })
	}
	left := map[*federation.Endpoint]resource.Reason{}
	var refused *resource.Reason
	for _, r := range slices.Backward(v.Reasons) {
		if r.Endpoint != nil {
			left[r.Endpoint] = r
		} else if r.Code == resource.ReasonTLS || r.Code == resource.ReasonSNIConflict {
			refused = &r
		}
	}
	return each(p.Service, func(of federation.Explanation) federation.Explanation {
		r, isLeft := left[of.Endpoint]
		switch {
		case isLeft:
			return federation.Explanation{Via: federation.ViaNone, Code: r.Code, Message: r.Message, Cause: r.Cause}
		case refused != nil:
			return federation.Explanation{Via: federation.ViaNone, Code: refused.Code, Message: refused.Message, Cause: refused.Cause}
		}
		return included(v, p, of)
	})
}

// build makes the resource of the port that the proxy has; nil where it has none.
func (e explainer) build(t resource.Type, p service.ServedPort) *facet.View {
	name := resource.ClusterName(p.Service.Key.Hostname, p.Port.Number)
	for _, f := range e.view.Facets(t) {
		if !f.Has(node.Offers) || !f.Covers(p.Service) {
			continue
		}
		v := facet.Open(f, e.snapshot.Read())
		v.GatewayHops = map[*federation.Endpoint]facet.GatewayHop{}
		if m := contentOf(f)[t].build(v, name); m != nil {
			return v
		}
	}
	return nil
}

// included explains an endpoint to which the proxy sends.
func included(v *facet.View, p service.ServedPort, of federation.Explanation) federation.Explanation {
	out := federation.Explanation{Included: true, Via: federation.ViaDirect, Code: ExplainedDirect}
	c, through := v.GatewayHops[of.Endpoint]
	d, _ := destination.Of(v, resource.ClusterName(p.Service.Key.Hostname, p.Port.Number))
	switch {
	case through:
		out.Via, out.Code, out.Cause = federation.ViaGateway, ExplainedGateway, c.Gateways[0].Cause.Object
		out.Message = fmt.Sprintf("it is in network %s, and network %s enters there by %s", of.Endpoint.Network,
			v.Network(), addressesOf(c.Gateways))
		if c.Dead {
			out.Message += "; no probe reaches them, so that they are used where nothing else is left"
		}
	case d.Service != nil && d.Passthrough():
		out.Code, out.Message = ExplainedPassthrough, "callers choose the endpoint by its address"
	case !d.EDS() || d.Service.MeshExternal:
		out.Message = "the service is called by the names or addresses of its endpoints, whatever their network"
	case of.Endpoint.Network == v.Network():
		out.Message = fmt.Sprintf("it is in the proxy's own network %s", of.Endpoint.Network)
	default:
		out.Message = fmt.Sprintf("it is in network %s, which has no gateway and is sent to directly", of.Endpoint.Network)
	}
	if drain, drained := p.Service.DrainOf(of.Shard, of.Endpoint); drained {
		out.Message += fmt.Sprintf("; %s takes %d %% of its requests away", drain.Drain.Title(), drain.Share)
		out.Cause = drain.Drain
	}
	return out
}

func addressesOf(gateways []federation.Gateway) string {
	texts := make([]string, len(gateways))
	for i, g := range gateways {
		texts[i] = g.Address.String()
	}
	return strings.Join(texts, ", ")
}
