package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1beta1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

func TestWhatIsNotHonouredIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		kind, spec string
		want       []string
	}{
		"all supported": {
			"VirtualService",
			`{hosts: [web], http: [{match: [{uri: {prefix: /a}}], timeout: 1s, retries: {attempts: 2}, route: [{destination: {host: web, subset: v1}, weight: 1}]}]}`, nil,
		},
		"delegate": {"VirtualService", `{hosts: [web], http: [{delegate: {name: a}}]}`, nil},
		"values": {
			"VirtualService",
			`{hosts: ["*", web], http: [{match: [{uri: {regex: "("}}, {headers: {uri: {exact: a}}}], redirect: {redirectCode: 200}}, {directResponse: {status: 200}}, {directResponse: {status: 200}}]}`,
			[]string{"hosts[0]", "http[0].match[0].uri", "http[0].match[1].headers[uri]", "http[0].redirect.redirectCode", "http[2]"},
		},
		"headers": {
			"VirtualService",
			`{hosts: [web], http: [{headers: {request: {set: {host: a, ":path": b, x: "%NO%"}, remove: [host]}}, route: [{destination: {host: web}}]}]}`,
			[]string{"http[0].headers.request.remove[0]", "http[0].headers.request.set[:path]", "http[0].headers.request.set[x]"},
		},
		"faults": {
			"VirtualService",
			`{hosts: [web], http: [{fault: {delay: {exponentialDelay: 1s}}, route: [{destination: {host: web}}]}]}`,
			[]string{"http[0].fault.delay", "http[0].fault.delay.exponentialDelay"},
		},
		"connections": {
			"VirtualService",
			`{hosts: [web], tls: [{match: [{sniHosts: ["*"], destinationSubnets: [x]}]}], tcp: [{match: [{sourceSubnet: 10.0.0.0/8}]}]}`,
			[]string{"tcp[0].match[0].sourceSubnet", "tls[0].match[0].destinationSubnets", "tls[0].match[0].sniHosts[0]"},
		},
		"subnets at gateways": {
			"VirtualService",
			`{hosts: [web], gateways: [edge], tcp: [{match: [{destinationSubnets: [10.0.0.0/8]}]}]}`,
			[]string{"tcp[0].match[0].destinationSubnets"},
		},
		"R31 subnets at gateways, TLS": {
			"VirtualService",
			`{hosts: [web], gateways: [edge, mesh], tls: [{match: [{sniHosts: [web], destinationSubnets: [10.0.0.0/8]}, {sniHosts: [web], gateways: [mesh], destinationSubnets: [10.0.0.0/8]}]}]}`,
			[]string{"tls[0].match[0].destinationSubnets"},
		},
		"a host that is added": {
			"VirtualService",
			`{hosts: [web], http: [{headers: {request: {add: {host: a}}}, route: [{destination: {host: web}}]}]}`, nil,
		},
		"destinations": {
			"DestinationRule",
			`{host: web, trafficPolicy: {loadBalancer: {simple: RANDOM, zoneAwareLbSetting: {minClusterSize: 3, failoverPriority: [kubernetes.io/hostname]}, localityLbSetting: {failoverPriority: [a, kubernetes.io/hostname]}}, portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE, credentialName: a/b}}]}, subsets: [{name: v1, labels: {v: "1"}, trafficPolicy: {tunnel: {targetHost: a, targetPort: 0}}}]}`,
			[]string{
				"subsets[0].trafficPolicy.tunnel", "trafficPolicy.loadBalancer.localityLbSetting.failoverPriority[1]",
				"trafficPolicy.loadBalancer.zoneAwareLbSetting.failoverPriority[0]", "trafficPolicy.loadBalancer.zoneAwareLbSetting.minClusterSize",
				"trafficPolicy.portLevelSettings[0].tls.credentialName",
			},
		},
		"K22 pings": {
			"DestinationRule",
			`{host: web, trafficPolicy: {connectionPool: {http: {http2KeepAlive: {interval: 1s}}}, portLevelSettings: [{port: {number: 80}, connectionPool: {http: {http2KeepAlive: {interval: 1s, timeout: 1s}}}}]}}`,
			[]string{"trafficPolicy.connectionPool.http.http2KeepAlive"},
		},
		"sidecar": {
			"Sidecar",
			`{egress: [{hosts: ["*/*"], port: {number: 80, protocol: HTTP}}, {hosts: ["*/*"], port: {number: 81, protocol: HTTP_PROXY}}, {hosts: ["*/*"], captureMode: NONE}], ingress: [{port: {number: 80, name: a}, bind: 10.0.0.1, captureMode: IPTABLES, defaultEndpoint: "127.0.0.1:80"}], inboundConnectionPool: {http: {maxRetries: 3, http2KeepAlive: {interval: 1s}}}}`,
			[]string{"egress[0].port.protocol", "egress[2].captureMode", "inboundConnectionPool.http.http2KeepAlive", "inboundConnectionPool.http.maxRetries", "ingress[0].bind", "ingress[0].port.name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().config(t, fmt.Sprintf("kind: %s\nmetadata: {name: n, namespace: shop}\nspec: %s", c.kind, c.spec))
			var got []string
			for o := range w.snapshot.Objects().All() {
				for _, f := range envoy.NotHonoured(o) {
					got = append(got, f.Path)
					if f.Reason == "" {
						t.Errorf("%s: no reason", f.Path)
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("not supported are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestK58EachFieldOfAProxyConfigIsReported with what to do where proxies are started.
func TestK58EachFieldOfAProxyConfigIsReported(t *testing.T) {
	o := &federation.Object{
		Key: federation.ObjectKey{Group: "networking.istio.io", Kind: "ProxyConfig", Name: "n"},
		Spec: &networking.ProxyConfig{
			Selector: &selection.WorkloadSelector{MatchLabels: map[string]string{"app": "a"}}, Concurrency: wrapperspb.Int32(2),
			EnvironmentVariables: map[string]string{"ISTIO_META_A": "b"}, Image: &networking.ProxyImage{ImageType: "distroless"},
		},
	}
	var got []string
	for _, f := range envoy.NotHonoured(o) {
		got = append(got, f.Path)
		if !strings.Contains(f.Reason, "start") {
			t.Errorf("%s: %s", f.Path, f.Reason)
		}
	}
	if want := []string{"concurrency", "environmentVariables", "image", "selector"}; !slices.Equal(got, want) {
		t.Errorf("reported are %q, want %q", got, want)
	}
}

// Kinds that are not compiled say so as a whole; those of registries do not.
func TestWholeKindsAreNotHonoured(t *testing.T) {
	for _, c := range []struct {
		group, kind string
		want        int
	}{
		{"networking.istio.io", "ProxyConfig", 1},
		{"gateway.networking.k8s.io", "UDPRoute", 0},
		{"gateway.networking.k8s.io", "HTTPRoute", 0},
		{"networking.istio.io", "ServiceEntry", 0},
		{"isthmus.dev", "MeshSettings", 0},
	} {
		got := envoy.NotHonoured(&federation.Object{Key: federation.ObjectKey{Group: c.group, Kind: c.kind, Name: "n"}})
		if len(got) != c.want || c.want == 1 && (got[0].Path != "spec" || got[0].Reason == "") {
			t.Errorf("%s: %v", c.kind, got)
		}
	}
}
