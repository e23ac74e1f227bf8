package envoy_test

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
)

// configure adds an object.
func (w *fixture) configure(o *federation.Object) *fixture {
	return w.apply(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
}

// drawVirtualService makes one of anything, not all of it sensible.
func drawVirtualService(t *rapid.T, number int) *federation.Object {
	spec := &networking.VirtualService{
		Hosts: rapid.SliceOfN(rapid.SampledFrom([]string{
			"web.shop.svc.cluster.local", "web.shop", "api.example.com", "*.example.com", "*.svc.cluster.local", "none.example",
			"db.shop.svc.cluster.local", "*", "a b",
		}), 0, 3).Draw(t, "hosts"),
		Gateways: rapid.SampledFrom([][]string{nil, nil, {"mesh"}, {"shop/front"}}).Draw(t, "gateways"),
		ExportTo: rapid.SampledFrom([][]string{nil, nil, {"."}, {"shop"}, {"*"}}).Draw(t, "exportTo"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "http") {
		spec.Http = append(spec.Http, drawHTTPRoute(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "tls") {
		spec.Tls = append(spec.Tls, &networking.TLSRoute{Route: drawDestinations(t), Match: []*networking.TLSMatchAttributes{{
			SniHosts:        rapid.SliceOfN(rapid.SampledFrom([]string{"a.example", "*.example", "A.example", "*"}), 0, 2).Draw(t, "sni"),
			SourceNamespace: rapid.SampledFrom([]string{"", "shop"}).Draw(t, "source"),
		}}})
	}
	for range rapid.IntRange(0, 2).Draw(t, "tcp") {
		spec.Tcp = append(spec.Tcp, &networking.TCPRoute{Route: drawDestinations(t), Match: []*networking.L4MatchAttributes{{
			Port:               rapid.SampledFrom([]uint32{0, 443}).Draw(t, "port"),
			DestinationSubnets: rapid.SliceOfN(rapid.SampledFrom([]string{"10.1.0.0/16", "10.1.0.1", "fd00::/8"}), 0, 2).Draw(t, "subnets"),
		}}})
	}
	o := &federation.Object{
		Key: federation.ObjectKey{
			Group: "networking.istio.io", Kind: "VirtualService",
			Namespace: rapid.SampledFrom([]string{"shop", "other"}).Draw(t, "vs namespace"), Name: fmt.Sprint("v", number),
			Cluster: rapid.SampledFrom([]federation.ClusterID{"", "", "c1", "c2"}).Draw(t, "vs cluster"),
		},
		Digest: fmt.Sprint(spec), Spec: spec,
	}
	index(o)
	return o
}

func drawHTTPRoute(t *rapid.T) *networking.HTTPRoute {
	r := &networking.HTTPRoute{Name: rapid.SampledFrom([]string{"", "r"}).Draw(t, "name")}
	if rapid.IntRange(0, 4).Draw(t, "delegates") == 0 {
		r.Delegate = &networking.Delegate{
			Name:      rapid.SampledFrom([]string{"v0", "v1", "part", ""}).Draw(t, "delegate"),
			Namespace: rapid.SampledFrom([]string{"", "shop", "other"}).Draw(t, "delegate's namespace"),
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "matches") {
		r.Match = append(r.Match, &networking.HTTPMatchRequest{
			Uri: drawMatch(t, "uri"), Method: drawMatch(t, "method"), Authority: drawMatch(t, "authority"),
			Headers: map[string]*networking.StringMatch{rapid.SampledFrom([]string{"x-a", "uri", "bad name", ""}).Draw(t,
				"header"): drawMatch(t, "value")},
			QueryParams: map[string]*networking.StringMatch{"q": drawMatch(t, "query")},
			Port:        rapid.SampledFrom([]uint32{0, 0, 80}).Draw(t, "match port"),
		})
	}
	for _, d := range drawDestinations(t) {
		r.Route = append(r.Route, &networking.HTTPRouteDestination{
			Destination: d.GetDestination(),
			Weight:      d.GetWeight(), Headers: drawHeaders(t),
		})
	}
	switch rapid.IntRange(0, 6).Draw(t, "action") {
	case 0:
		r.Redirect = &networking.HTTPRedirect{
			Uri:          rapid.SampledFrom([]string{"", "/a", "%PREFIX()%/b"}).Draw(t, "redirect"),
			RedirectCode: rapid.SampledFrom([]uint32{0, 302, 299}).Draw(t, "code"),
		}
	case 1:
		r.DirectResponse = &networking.HTTPDirectResponse{Status: rapid.SampledFrom([]uint32{200, 0, 999}).Draw(t, "status")}
	case 2:
		r.Rewrite = &networking.HTTPRewrite{Uri: "/x", Authority: rapid.SampledFrom([]string{"", "a.example", "bad\nhost"}).Draw(t, "rewrite")}
		r.Mirror = &networking.Destination{Host: "web.shop.svc.cluster.local"}
	case 3:
		r.Fault = &networking.HTTPFaultInjection{Abort: &networking.HTTPFaultInjection_Abort{
			ErrorType:  &networking.HTTPFaultInjection_Abort_HttpStatus{HttpStatus: rapid.Int32Range(-1, 700).Draw(t, "abort")},
			Percentage: &networking.Percent{Value: rapid.Float64().Draw(t, "percentage")},
		}}
	case 4:
		r.Timeout = durationpb.New(rapid.SampledFrom([]time.Duration{0, -1, time.Second}).Draw(t, "timeout"))
		r.Retries = &networking.HTTPRetry{
			Attempts: rapid.Int32Range(-1, 3).Draw(t, "attempts"),
			RetryOn:  rapid.SampledFrom([]string{"", "5xx,503", "nonsense"}).Draw(t, "retryOn"), PerTryTimeout: r.Timeout, Backoff: r.Timeout,
		}
	}
	r.Headers = drawHeaders(t)
	return r
}

func drawHeaders(t *rapid.T) *networking.Headers {
	name := rapid.SampledFrom([]string{"x-a", "host", ":path", "bad name", "X", ""}).Draw(t, "set")
	value := rapid.SampledFrom([]string{"", "v", "50%", "%REQ(x)%", "%X%", "a\nb"}).Draw(t, "to")
	return &networking.Headers{Request: &networking.Headers_HeaderOperations{Set: map[string]string{name: value}, Remove: []string{name}}}
}

func drawMatch(t *rapid.T, label string) *networking.StringMatch {
	text := rapid.SampledFrom([]string{"", "/", "/a", "a*", "(", "%"}).Draw(t, label)
	switch rapid.IntRange(0, 4).Draw(t, label+" how") {
	case 0:
		return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: text}}
	case 1:
		return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: text}}
	case 2:
		return &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: text}}
	case 3:
		return &networking.StringMatch{}
	}
	return nil
}

func drawDestinations(t *rapid.T) []*networking.RouteDestination {
	var all []*networking.RouteDestination
	for range rapid.IntRange(0, 3).Draw(t, "destinations") {
		d := &networking.Destination{
			Host:   rapid.SampledFrom([]string{"web", "web.shop", "db.shop.svc.cluster.local", "nowhere", ""}).Draw(t, "destination"),
			Subset: rapid.SampledFrom([]string{"", "", "v1"}).Draw(t, "subset"),
		}
		if number := rapid.SampledFrom([]uint32{0, 80, 443, 1 << 20}).Draw(t, "to port"); number != 0 {
			d.Port = &networking.PortSelector{Number: number}
		}
		all = append(all, &networking.RouteDestination{
			Destination: d,
			Weight:      rapid.SampledFrom([]int32{0, 1, 50, -1, 1<<31 - 1}).Draw(t, "share"),
		})
	}
	return all
}
