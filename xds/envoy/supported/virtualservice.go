package supported

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

var _ = add(row{
	kind: federation.VirtualServiceKind,
	table: &table{
		fields: []string{
			"hosts", "gateways", "exportTo",
			"http.name", "http.timeout", "http.retries", "http.rewrite", "http.redirect", "http.directResponse",
			"http.delegate", "http.match", "http.headers", "http.corsPolicy",
			"http.mirror", "http.mirrors", "http.mirrorPercent", "http.mirrorPercentage",
			"http.route.destination", "http.route.weight", "http.route.headers",
			"http.fault.delay.fixedDelay", "http.fault.delay.percentage", "http.fault.delay.percent",
			"http.fault.abort.httpStatus", "http.fault.abort.grpcStatus", "http.fault.abort.percentage",
			"tls.match.sniHosts", "tls.match.destinationSubnets", "tls.match.port", "tls.match.sourceLabels", "tls.match.sourceNamespace",
			"tls.match.gateways", "tls.route",
			"tcp.match.destinationSubnets", "tcp.match.port", "tcp.match.sourceLabels", "tcp.match.sourceNamespace",
			"tcp.match.gateways", "tcp.route",
		},
		refused: map[string]string{
			"http.fault.delay.exponentialDelay": "Envoy delays by a fixed time only; use fixedDelay",
			"http.fault.abort.http2Error":       "Envoy does not abort with errors of HTTP/2; use httpStatus or grpcStatus",
			"tcp.match.sourceSubnet":            "Istio does not document this field, and its proxies ignore it; so do those of the hub; use sourceLabels or sourceNamespace",
		},
		values: func(m proto.Message) []Field {
			spec, _ := m.(*networking.VirtualService)
			return virtualServiceValues(spec)
		},
	},
})

// valueNotes collects values that are not supported.
type valueNotes struct{ found []Field }

func (n *valueNotes) add(path, reason string) { n.found = append(n.found, Field{path, reason}) }

// note takes an error of compiling that begins with the path below.
func (n *valueNotes) note(path string, err error) {
	if err == nil {
		return
	}
	below, why, cut := strings.Cut(err.Error(), ": ")
	if !cut || !strings.HasPrefix(below, ".") {
		below, why = "", err.Error()
	}
	n.add(path+below, why+"; the object has no effect on its hosts")
}

func virtualServiceValues(spec *networking.VirtualService) []Field {
	n := &valueNotes{}
	for i, host := range spec.GetHosts() {
		if host == "*" && virtualservice.ForMesh(spec.GetGateways()) {
			n.add(fmt.Sprintf("hosts[%d]", i), "sidecars have no routes for every host at once; name hosts or a domain")
		}
	}
	everything := -1
	for i, route := range spec.GetHttp() {
		path := fmt.Sprintf("http[%d]", i)
		if everything >= 0 {
			n.add(path, fmt.Sprintf("http[%d] has no match and accepts every request before this route", everything))
		} else if len(route.GetMatch()) == 0 {
			everything = i
		}
		n.httpRoute(path, route, meshOnly(spec))
	}
	for i, route := range spec.GetTls() {
		for j, match := range route.GetMatch() {
			n.subnets(spec, fmt.Sprintf("tls[%d].match[%d]", i, j), match.GetGateways(), match.GetDestinationSubnets())
			for k, name := range match.GetSniHosts() {
				if !resource.IsServerName(strings.ToLower(name)) {
					n.add(fmt.Sprintf("tls[%d].match[%d].sniHosts[%d]", i, j, k),
						"this is not the name of a server; the object has no effect on connections to its hosts")
				}
			}
		}
	}
	for i, route := range spec.GetTcp() {
		for j, match := range route.GetMatch() {
			n.subnets(spec, fmt.Sprintf("tcp[%d].match[%d]", i, j), match.GetGateways(), match.GetDestinationSubnets())
		}
	}
	return n.found
}

func (n *valueNotes) subnets(spec *networking.VirtualService, path string, gateways, subnets []string) {
	if len(gateways) == 0 {
		gateways = spec.GetGateways()
	}
	if len(subnets) > 0 && slices.ContainsFunc(gateways, func(name string) bool { return name != virtualservice.MeshGateway }) {
		n.add(path+".destinationSubnets",
			"gateways do not tell connections apart by the address that they are for: this match applies to none of theirs")
	}
	if _, err := virtualservice.InSubnets(subnets, netip.Prefix{}); err != nil {
		n.add(path+".destinationSubnets", err.Error()+"; the object has no effect on connections to its hosts")
	}
}

// claims reports matches of claims that apply to no request, whatever RequestAuthentications there are.
func (n *valueNotes) claims(path string, headers map[string]*networking.StringMatch, meshOnly bool) {
	for _, name := range virtualservice.Claims(headers) {
		_, known := virtualservice.ClaimPath(name)
		_, err := virtualservice.RouteMatch(&networking.HTTPMatchRequest{Headers: map[string]*networking.StringMatch{"x": headers[name]}}, true)
		switch {
		case !known:
			n.add(path+"["+name+"]",
				"it does not name a claim: write @request.auth.claims.NAME or @request.auth.claims[NAME]; this match applies to no request")
		case err != nil:
			n.add(path+"["+name+"]", "the expression is not one that Envoy accepts; this match applies to no request")
		case meshOnly:
			n.add(path+"["+name+"]", "only gateways match claims of tokens; this match applies to no request")
		}
	}
}

// meshOnly reports whether the object is for sidecars alone. One without hosts is for those that delegate to it.
func meshOnly(spec *networking.VirtualService) bool {
	return len(spec.GetHosts()) > 0 && !slices.ContainsFunc(spec.GetGateways(),
		func(name string) bool { return name != virtualservice.MeshGateway })
}

func (n *valueNotes) httpRoute(path string, route *networking.HTTPRoute, meshOnly bool) {
	for i, match := range route.GetMatch() {
		at := fmt.Sprintf("%s.match[%d]", path, i)
		_, err := virtualservice.RouteMatch(match, true)
		n.note(at, err)
		n.claims(at+".headers", match.GetHeaders(), meshOnly)
		n.claims(at+".withoutHeaders", match.GetWithoutHeaders(), meshOnly)
		for _, name := range slices.Sorted(maps.Keys(match.GetHeaders())) {
			if slices.Contains(virtualservice.ReservedHeaders, name) {
				n.add(at+".headers["+name+"]", "a match of this name is not one of a header; use the field "+name)
			}
		}
	}
	if route.GetRedirect() != nil {
		_, err := virtualservice.Redirect(route.GetRedirect(), 0, false)
		n.note(path, err)
	}
	if route.GetDirectResponse() != nil {
		_, err := virtualservice.DirectResponse(route.GetDirectResponse())
		n.note(path, err)
	}
	n.note(path, virtualservice.SetRetries(&routev3.RouteAction{}, route.GetRetries()))
	n.note(path, virtualservice.SetRewrite(&routev3.RouteAction{}, route.GetRewrite()))
	n.note(path, virtualservice.AddFilters(&routev3.Route{}, route))
	n.headers(path+".headers", route.GetHeaders())
	for i, d := range route.GetRoute() {
		n.headers(fmt.Sprintf("%s.route[%d].headers", path, i), d.GetHeaders())
	}
}

func (n *valueNotes) headers(path string, in *networking.Headers) {
	for side, operations := range map[string]*networking.Headers_HeaderOperations{"request": in.GetRequest(), "response": in.GetResponse()} {
		for how, values := range map[string]map[string]string{"set": operations.GetSet(), "add": operations.GetAdd()} {
			for name, value := range values {
				at := fmt.Sprintf("%s.%s.%s[%s]", path, side, how, name)
				host := side == "request" && (name == ":authority" || strings.EqualFold(name, "host"))
				switch {
				case host:
				case virtualservice.FixedHeader(name):
					n.add(at, "Envoy does not change this header")
				case virtualservice.HeaderFormat(value) != value:
					n.add(at, "the value holds a command that headers do not have; it is sent as it is written")
				}
			}
		}
		for i, name := range operations.GetRemove() {
			if virtualservice.FixedHeader(name) {
				n.add(fmt.Sprintf("%s.%s.remove[%d]", path, side, i), "Envoy does not remove this header")
			}
		}
	}
}
