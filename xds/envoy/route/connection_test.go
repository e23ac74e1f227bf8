package route

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// bytesTo is the last filter's cluster, or weights, and what the policy says, behind how many filters.
func bytesTo(t *testing.T, filters []*listenerv3.Filter) string {
	t.Helper()
	if len(filters) == 0 {
		return "none"
	}
	proxy := &tcpproxyv3.TcpProxy{}
	if err := filters[len(filters)-1].GetTypedConfig().UnmarshalTo(proxy); err != nil {
		t.Fatal(err)
	}
	words := []string{brief(proxy.GetCluster())}
	for _, w := range proxy.GetWeightedClusters().GetClusters() {
		words = append(words, fmt.Sprintf("%d %s", w.GetWeight(), brief(w.GetName())))
	}
	if idle := proxy.GetIdleTimeout(); idle != nil {
		words = append(words, "idle "+idle.AsDuration().String())
	}
	if len(filters) > 1 {
		words = append(words, fmt.Sprintf("behind %d filters", len(filters)-1))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// TestWhereConnectionsGo: each case names the field of a VirtualService for the port that it is about.
func TestWhereConnectionsGo(t *testing.T) {
	const db = `"route": [{"destination": {"host": "db", "port": {"number": 3306}}}]`
	const one = `"route": [{"destination": {"host": "one"}}]`
	for name, test := range map[string]struct {
		tls   bool // the port speaks it
		spec  string
		want  string // what is for each name, then the rest
		noted string
	}{
		"tcp.route":                     {spec: `"tcp": [{` + db + `}]`, want: "rest: 3306||db, idle 1m0s"},
		"tcp, the first":                {spec: `"tcp": [{` + one + `}, {` + db + `}]`, want: "rest: 9000||one"},
		"tcp.match.port":                {spec: `"tcp": [{"match": [{"port": 80}], ` + one + `}]`, want: "rest: 9000||one"},
		"tcp.match.port, another":       {spec: `"tcp": [{"match": [{"port": 81}], ` + one + `}]`, want: "rest: none"},
		"tcp.match.destinationSubnets":  {spec: `"tcp": [{"match": [{"destinationSubnets": ["10.0.0.0/8"]}], ` + one + `}]`, want: "rest: 9000||one"},
		"destinationSubnets, others":    {spec: `"tcp": [{"match": [{"destinationSubnets": ["10.9.0.0/16"]}], ` + one + `}]`, want: "rest: none"},
		"tcp.match.sourceNamespace":     {spec: `"tcp": [{"match": [{"sourceNamespace": "bank"}], ` + one + `}]`, want: "rest: none"},
		"tcp.match.gateways":            {spec: `"tcp": [{"match": [{"gateways": ["front"]}], ` + one + `}]`, want: "rest: none"},
		"tcp.route.destination unknown": {spec: `"tcp": [{"route": [{"destination": {"host": "none"}}]}]`, want: "rest: BlackHoleCluster", noted: "is not a service that this proxy sees"},
		"tcp.route, none":               {spec: `"tcp": [{}]`, want: "rest: BlackHoleCluster", noted: "no destination with a weight"},
		"tcp.route.weight": {
			spec: `"tcp": [{"route": [{"destination": {"host": "one"}, "weight": 3}, {"destination": {"host": "none"}, "weight": 1}, {"destination": {"host": "web"}}]}]`,
			want: "rest: 3 9000||one, 1 BlackHoleCluster", noted: "none.shop.svc.cluster.local is not a service",
		},
		"tcp, to a wildcard":           {spec: `"tcp": [{"route": [{"destination": {"host": "*.example.net"}}]}]`, want: "rest: BlackHoleCluster", noted: "connections of this route have none"},
		"tcp, a port with detection":   {spec: `"tcp": [{"route": [{"destination": {"host": "any"}}]}]`, want: "rest: 7000||any, behind 1 filters"},
		"tcp, where the port is TLS":   {tls: true, spec: `"tcp": [{` + one + `}]`, want: "rest: none"},
		"tls, where the port is bytes": {spec: `"tls": [{"match": [{"sniHosts": ["a.com"]}], ` + one + `}]`, want: "rest: none"},
		"tls.match.sniHosts":           {tls: true, spec: `"tls": [{"match": [{"sniHosts": ["A.com", "*.b.com"]}], ` + one + `}]`, want: "a.com *.b.com: 9000||one; rest: none"},
		"sniHosts, the first has it": {
			tls: true, spec: `"tls": [{"match": [{"sniHosts": ["a.com"]}], ` + one + `}, {"match": [{"sniHosts": ["a.com", "b.com"]}], ` + db + `}]`,
			want: "a.com: 9000||one; b.com: 3306||db, idle 1m0s; rest: none",
		},
		"sniHosts, not a name":   {tls: true, spec: `"tls": [{"match": [{"sniHosts": ["a b"]}], ` + one + `}]`, want: `tls[0].match[0].sniHosts: "a b" is not the name of a server`},
		"tls.match.port":         {tls: true, spec: `"tls": [{"match": [{"sniHosts": ["a.com"], "port": 81}], ` + one + `}]`, want: "rest: none"},
		"sniHosts of a wildcard": {tls: true, spec: `"tls": [{"match": [{"sniHosts": ["a.example.net"]}], "route": [{"destination": {"host": "*.example.net"}}]}]`, want: "a.example.net: 443||*.example.net, behind 1 filters; rest: none"},
		"sniHosts beyond a wildcard": {
			tls: true, spec: `"tls": [{"match": [{"sniHosts": ["a.com"]}], "route": [{"destination": {"host": "*.example.net"}}]}]`,
			want: "a.com: BlackHoleCluster; rest: none", noted: "the destination *.example.net is not for connections to a.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := ruleOf(t, shop(t), inShop, `{`+test.spec+`}`)
			c, err := r.connections(netip.MustParsePrefix("10.0.0.1/32"), test.tls)
			var parts []string
			for _, n := range c.Named {
				parts = append(parts, strings.Join(n.Servers, " ")+": "+bytesTo(t, n.Filters))
			}
			got := strings.Join(append(parts, "rest: "+bytesTo(t, c.Rest)), "; ")
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("connections: %q, want %q", got, test.want)
			}
			if noted := r.noted(); (noted == "") != (test.noted == "") || !strings.Contains(noted, test.noted) {
				t.Errorf("it says %q, want %q", noted, test.noted)
			}
		})
	}
}

// TestConnectionsToPorts: what no route of the VirtualService takes, and those of an invalid one, go to the service.
func TestConnectionsToPorts(t *testing.T) {
	const host = `"hosts": ["db.shop.svc.cluster.local"]`
	for name, test := range map[string]struct{ object, want, noted string }{
		"no VirtualService": {"", "3306||db, idle 1m0s", ""},
		"tcp":               {`{` + host + `, "tcp": [{"route": [{"destination": {"host": "one"}}]}]}`, "9000||one", ""},
		"tcp for others":    {`{` + host + `, "tcp": [{"match": [{"port": 1}], "route": [{"destination": {"host": "one"}}]}]}`, "3306||db, idle 1m0s", ""},
		"destinationSubnets, invalid": {
			`{` + host + `, "tcp": [{"match": [{"destinationSubnets": ["x"]}], "route": [{"destination": {"host": "one"}}]}]}`,
			"3306||db, idle 1m0s", "shop/vs is excluded for db.shop.svc.cluster.local:3306: tcp[0].match[0].destinationSubnets",
		},
	} {
		var objects []string
		if test.object != "" {
			objects = []string{"shop/vs " + test.object}
		}
		v := shop(t, objects...).View(t, inShop)
		p, found := service.OwnerOf(v, resource.ClusterID{Host: "db.shop.svc.cluster.local", Port: 3306})
		if !found {
			t.Fatal("there is no db")
		}
		c := ConnectionsTo(v, p, netip.Prefix{})
		if got := bytesTo(t, c.Rest); got != test.want {
			t.Errorf("%s: connections go to %q, want %q", name, got, test.want)
		}
		if noted := (&Rule{View: v}).noted(); (noted == "") != (test.noted == "") || !strings.Contains(noted, test.noted) {
			t.Errorf("%s: it says %q, want %q", name, noted, test.noted)
		}
	}
}

// TestWhereDatagramsGo: all of a port go to one destination.
func TestWhereDatagramsGo(t *testing.T) {
	to := func(host string, port uint32, weight int32) *networking.RouteDestination {
		d := &networking.Destination{Host: host}
		if port > 0 {
			d.Port = &networking.PortSelector{Number: port}
		}
		return &networking.RouteDestination{Destination: d, Weight: weight}
	}
	for name, test := range map[string]struct {
		route []*networking.RouteDestination
		want  federation.Hostname
		noted string
	}{
		"destination.port":            {[]*networking.RouteDestination{to("db", 53, 0)}, "db.shop.svc.cluster.local", ""},
		"destination.port, of TCP":    {[]*networking.RouteDestination{to("db", 3306, 0)}, "", "has no UDP port 3306"},
		"destination.port, none":      {[]*networking.RouteDestination{to("db", 0, 0)}, "", "has no UDP port 80"},
		"destination.port, too large": {[]*networking.RouteDestination{to("db", 1<<16+53, 0)}, "", "has no UDP port 65535"},
		"destination.host, refused":   {[]*networking.RouteDestination{to(federation.RefusedHost, 53, 0)}, "", ""},
		"weight is 0":                 {[]*networking.RouteDestination{to("none", 53, 0), to("db", 53, 1)}, "db.shop.svc.cluster.local", ""},
		"weight, of two":              {[]*networking.RouteDestination{to("db", 53, 1), to("web", 53, 9)}, "db.shop.svc.cluster.local", "the others get none"},
		"weight, of none":             {[]*networking.RouteDestination{to("db", 53, 0), to("web", 53, 0)}, "", "no destination with a weight"},
	} {
		r := ruleOf(t, shop(t), inShop, `{}`)
		var got federation.Hostname
		if p := r.Datagrams(test.route); p.Service != nil {
			got = p.Service.Key.Hostname
		}
		if got != test.want {
			t.Errorf("%s: they go to %q, want %q", name, got, test.want)
		}
		if noted := r.noted(); (noted == "") != (test.noted == "") || !strings.Contains(noted, test.noted) {
			t.Errorf("%s: it says %q, want %q", name, noted, test.noted)
		}
	}
}
