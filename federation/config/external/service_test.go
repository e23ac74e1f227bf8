package external_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// entry reads a ServiceEntry of namespace shop; each is a minute younger than
// the one before.
func entry(t testing.TB, name string, age int, spec string) external.Entry {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	e := external.Entry{
		Key:     federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: name},
		Created: begin.Add(time.Duration(age) * time.Minute), Spec: &networking.ServiceEntry{},
	}
	if err := protojson.Unmarshal(data, e.Spec); err != nil {
		t.Fatalf("spec of %s: %v", name, err)
	}
	return e
}

func shop(host string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: "shop"}
}

func codes(problems []federation.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Code+" "+p.Field)
	}
	return out
}

func render(t testing.TB, s *federation.Shard) string {
	t.Helper()
	data, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestServiceEntryBecomesAServicePerHost(t *testing.T) {
	e := entry(t, "pay", 0, `
hosts: [Pay.Example.com, "*.pay.example.com", pay]
addresses: [192.0.2.7, 198.51.100.9/24, "2001:db8::1"]
location: MESH_INTERNAL
resolution: STATIC
exportTo: [".", other]
subjectAltNames: ["spiffe://cluster.local/ns/shop/sa/pay"]
ports:
- {number: 443, name: https, protocol: HTTPS, targetPort: 8443}
- {number: 53, name: dns, protocol: UDP}
endpoints:
- {address: 10.0.0.1, ports: {https: 9443}, labels: {v: "1"}, network: n1, locality: eu/a/r1/x, weight: 3, serviceAccount: pay}
- {address: 10.0.0.2, labels: {security.istio.io/tlsMode: disabled}, serviceAccount: pay}
`)
	shards, problems := external.Services([]external.Entry{e}, nil)
	if len(problems) > 0 || len(shards) != 3 {
		t.Fatalf("%d services, problems %v", len(shards), problems)
	}
	want := `created: "2026-01-01T00:00:00Z"
endpoints:
- address: 10.0.0.1
  health: HEALTHY
  labels:
    v: "1"
  locality:
    region: eu
    subZone: r1/x
    zone: a
  network: n1
  ports:
  - name: https
    number: 9443
  - name: dns
    number: 53
  serviceAccount: shop/pay
  tlsMode: istio
  weight: 3
- address: 10.0.0.2
  health: HEALTHY
  labels:
    security.istio.io/tlsMode: disabled
  network: default
  ports:
  - name: https
    number: 8443
  - name: dns
    number: 53
  serviceAccount: shop/pay
  tlsMode: disabled
exportTo:
- .
- other
ports:
- name: https
  number: 443
  protocol: HTTPS
- name: dns
  number: 53
  protocol: UDP
resolution: 0
serviceAccounts:
- spiffe://cluster.local/ns/shop/sa/pay
uid: shop/pay
vips:
- 192.0.2.7/32
- 198.51.100.0/24
- 2001:db8::1/128
`
	for _, host := range []string{"pay.example.com", "*.pay.example.com", "pay"} {
		if diff := cmp.Diff(want, render(t, shards[shop(host)])); diff != "" {
			t.Errorf("%s: %s", host, diff)
		}
	}
}

func TestServiceEntryResolutions(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		resolution federation.Resolution
		endpoints  []string
		problems   []string
		gone       bool
	}{
		{name: "static", spec: "resolution: STATIC\nendpoints: [{address: 10.0.0.1}]", endpoints: []string{"10.0.0.1"}},
		{
			name: "dns with endpoints", spec: "resolution: DNS\nendpoints: [{address: A.example.com}, {address: 10.0.0.1}]",
			resolution: federation.DNSLB, endpoints: []string{"10.0.0.1", "a.example.com"},
		},
		{name: "dns by itself", spec: "resolution: DNS", resolution: federation.DNSLB, endpoints: []string{"h.example.com"}},
		{
			name: "round robin by itself", spec: "resolution: DNS_ROUND_ROBIN", resolution: federation.DNSRoundRobinLB,
			endpoints: []string{"h.example.com"},
		},
		{
			name: "round robin takes one", spec: "resolution: DNS_ROUND_ROBIN\nendpoints: [{address: a.example.com}, {address: b.example.com}]",
			resolution: federation.DNSRoundRobinLB, endpoints: []string{"a.example.com"}, problems: []string{"ENDPOINT_UNUSED spec.endpoints[1]"},
		},
		{name: "none", spec: "resolution: NONE\naddresses: [10.1.0.0/16]", resolution: federation.Passthrough},
		{
			name: "none takes no endpoints", spec: "endpoints: [{address: 10.0.0.1}]", resolution: federation.Passthrough,
			problems: []string{"ENDPOINT_UNUSED spec.endpoints"},
		},
		{name: "dynamic for one name", spec: "resolution: DYNAMIC_DNS", gone: true, problems: []string{"NOT_HONOURED spec.hosts"}},
		{name: "socket", spec: "resolution: STATIC\nendpoints: [{address: 'unix:///run/s.sock'}]", endpoints: []string{"unix:/run/s.sock"}},
		{name: "abstract socket", spec: "resolution: STATIC\nendpoints: [{address: 'unix://@s'}]", endpoints: []string{"unix:@s"}},
		{
			name: "a name needs DNS", spec: "resolution: STATIC\nendpoints: [{address: a.example.com}]",
			problems: []string{"ENDPOINT_UNUSED spec.endpoints[0].address"},
		},
		{
			name: "odd addresses",
			spec: "resolution: DNS\nendpoints: [{address: '127.1'}, {address: 'fe80::1%eth0'}, {address: 'unix://x'}, {address: ''}, {address: '*.a.example.com'}]", resolution: federation.DNSLB, problems: []string{
				"ADDRESS_INVALID spec.endpoints[0].address", "ADDRESS_INVALID spec.endpoints[1].address", "ADDRESS_INVALID spec.endpoints[2].address",
				"NOT_HONOURED spec.endpoints[3].address", "ADDRESS_INVALID spec.endpoints[4].address",
			},
		},
		{
			name: "CIDR with DNS", spec: "resolution: DNS\naddresses: [10.1.0.0/16]", resolution: federation.DNSLB,
			endpoints: []string{"h.example.com"}, problems: []string{"ADDRESS_INVALID spec.addresses[0]"},
		},
		{
			name: "unknown port of an endpoint", spec: "resolution: STATIC\nendpoints: [{address: 10.0.0.1, ports: {web: 1}}]",
			endpoints: []string{"10.0.0.1"}, problems: []string{"PORT_UNKNOWN spec.endpoints[0].ports.web"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entry(t, "h", 0, "hosts: [h.example.com]\nports: [{number: 80, name: http, protocol: HTTP}]\n"+c.spec)
			shards, problems := external.Services([]external.Entry{e}, nil)
			if diff := cmp.Diff(c.problems, codes(problems)); diff != "" {
				t.Errorf("problems: %s", diff)
			}
			shard := shards[shop("h.example.com")]
			if c.gone {
				if shard != nil {
					t.Error("there is a service")
				}
				return
			}
			var endpoints []string
			for _, ep := range shard.Endpoints {
				endpoints = append(endpoints, ep.Address.String())
			}
			if diff := cmp.Diff(c.endpoints, endpoints); diff != "" || shard.Resolution != c.resolution {
				t.Errorf("resolution %s, endpoints: %s", shard.Resolution, diff)
			}
		})
	}
}

func TestWildcardIsNotItsOwnEndpoint(t *testing.T) {
	e := entry(t, "w", 0, "hosts: ['*.example.com', a.example.com]\nresolution: DNS\nports: [{number: 80, name: http}]")
	shards, problems := external.Services([]external.Entry{e}, nil)
	if len(shards) != 1 || shards[shop("a.example.com")] == nil {
		t.Errorf("services: %v", shards)
	}
	if diff := cmp.Diff([]string{"WILDCARD_WITHOUT_ENDPOINTS spec.hosts"}, codes(problems)); diff != "" {
		t.Error(diff)
	}
}

func TestSelectorAndInlineEndpointsExcludeEachOther(t *testing.T) {
	e := entry(t, "s", 0,
		"hosts: [s.example.com]\nresolution: STATIC\nports: [{number: 80, name: http, targetPort: 8080}]\nworkloadSelector: {labels: {app: s}}")
	shards, problems := external.Services([]external.Entry{e}, nil)
	want := &federation.Selector{Labels: map[string]string{"app": "s"}, TargetPorts: map[string]uint16{"http": 8080}}
	if got := shards[shop("s.example.com")]; len(problems) > 0 || !got.Selector.Equal(want) || len(got.Endpoints) != 0 {
		t.Errorf("%+v, %v", got, problems)
	}
	e.Spec.Endpoints = []*networking.WorkloadEntry{{Address: "10.0.0.1"}}
	shards, problems = external.Services([]external.Entry{e}, nil)
	if got := shards[shop("s.example.com")]; got.Selector != nil || len(got.Endpoints) != 1 || len(problems) != 1 {
		t.Errorf("%+v, %v", got, problems)
	}
}

// TestSeed24 has two ServiceEntries of one host: the older decides, ports that
// it lacks are added, addresses are never united.
func TestSeed24(t *testing.T) {
	const head = "hosts: [db.example.com]\nresolution: STATIC\n"
	older := entry(t, "z-older", 0,
		head+"addresses: [192.0.2.1]\nports: [{number: 80, name: http, protocol: HTTP}]\nendpoints: [{address: 10.0.0.1}]")
	younger := entry(t, "a-younger", 1, head+
		"addresses: [192.0.2.2]\nlocation: MESH_INTERNAL\nports: [{number: 80, name: web, protocol: TCP}, {number: 443, name: tls, protocol: TLS, targetPort: 8443}]\nendpoints: [{address: 10.0.0.2}]")
	entries := []external.Entry{younger, older}
	for range 2 {
		shards, problems := external.Services(entries, nil)
		got := shards[shop("db.example.com")]
		if !slices.Equal(got.VIPs, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}) || !got.MeshExternal || got.UID != "shop/z-older" {
			t.Errorf("the older does not decide: %s", render(t, got))
		}
		if len(got.Ports) != 2 || got.Ports[0].Name != "http" || got.Ports[1].Name != "tls" {
			t.Errorf("ports %v", got.Ports)
		}
		if len(got.Endpoints) != 2 || !slices.Equal(got.Endpoints[1].Ports, []federation.EndpointPort{{Name: "tls", Number: 8443}}) {
			t.Errorf("endpoints %v", got.Endpoints)
		}
		if diff := cmp.Diff([]string{
			"DECIDED_BY_OLDER spec.location", "DECIDED_BY_OLDER spec.addresses",
			"DECIDED_BY_OLDER spec.ports[0].number",
		}, codes(problems)); diff != "" {
			t.Error(diff)
		}
		for _, p := range problems {
			if p.Object != "ServiceEntry shop/a-younger" || !strings.Contains(p.Message, "ServiceEntry shop/z-older") {
				t.Errorf("the problem does not name both: %+v", p)
			}
		}
		slices.Reverse(entries)
	}
}

func TestYoungerEntryOfAnotherResolutionIsNotUsed(t *testing.T) {
	older := entry(t, "older", 0, "hosts: [h.example.com]\nresolution: DNS\nports: [{number: 80, name: http}]")
	for _, spec := range []string{
		"resolution: STATIC\nports: [{number: 81, name: b}]\nendpoints: [{address: 10.0.0.2}]",
		"resolution: DNS\nports: [{number: 81, name: b}]\nworkloadSelector: {labels: {a: b}}",
		"resolution: DNS\nports: [{number: 81, name: http}]",
		"resolution: DNS\nports: [{number: 81}]",
	} {
		shards, problems := external.Services([]external.Entry{older, entry(t, "younger", 1, "hosts: [h.example.com]\n"+spec)}, nil)
		if got := shards[shop("h.example.com")]; len(got.Ports) != 1 || len(got.Endpoints) != 1 || got.Selector != nil || len(problems) != 1 {
			t.Errorf("%s: %s %v", spec, render(t, got), problems)
		}
	}
}

func TestAutomaticVIPs(t *testing.T) {
	allocated := map[federation.ServiceKey][]netip.Addr{}
	for _, host := range []string{"a.example.com", "*.example.com"} {
		allocated[shop(host)] = []netip.Addr{netip.MustParseAddr("240.240.0.9"), netip.MustParseAddr("2001:2::9")}
	}
	for _, c := range []struct {
		spec, host string
		wants      bool
	}{
		{"hosts: [a.example.com]\nresolution: STATIC", "a.example.com", true},
		{"hosts: [a.example.com]\nresolution: DNS", "a.example.com", true},
		{"hosts: [a.example.com]\nresolution: NONE", "a.example.com", false},
		{"hosts: [a.example.com]\nresolution: STATIC\naddresses: [192.0.2.1]", "a.example.com", false},
		{"hosts: ['*.example.com']\nresolution: STATIC", "*.example.com", false},
	} {
		e := entry(t, "a", 0, c.spec+"\nports: [{number: 80, name: http}]")
		shards, _ := external.Services([]external.Entry{e}, allocated)
		got := slices.ContainsFunc(shards[shop(c.host)].VIPs, func(p netip.Prefix) bool { return p.String() == "240.240.0.9/32" })
		r, _ := external.Read(e)
		if wants := external.WantsVIP(shop(c.host), []*external.Reading{r}); got != c.wants || wants != c.wants {
			t.Errorf("%q: has an automatic VIP %v, wants one %v; want %v", c.spec, got, wants, c.wants)
		}
	}
}

// TestK59EntriesOfNamesThatCallersAskFor: a wildcard is one service without endpoints, and what
// has no effect is a problem.
func TestK59EntriesOfNamesThatCallersAskFor(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		ports      []string
		problems   []string
	}{
		{
			name: "all protocols",
			spec: "ports: [{number: 80, name: a, protocol: HTTP}, {number: 81, name: b, protocol: GRPC}, {number: 443, name: c, protocol: HTTPS}, {number: 8443, name: d, protocol: TLS}]", ports: []string{"80 HTTP", "81 GRPC", "443 HTTPS", "8443 TLS"},
		},
		{name: "inside of the mesh", spec: "location: MESH_INTERNAL\nports: [{number: 80, name: a, protocol: HTTP}]", ports: []string{"80 HTTP"}},
		{
			name:  "connections without a name",
			spec:  "ports: [{number: 80, name: a, protocol: HTTP}, {number: 81, name: b}, {number: 82, name: c, protocol: MONGO}, {number: 83, name: d, protocol: UDP}]",
			ports: []string{"80 HTTP"}, problems: []string{
				"NOT_HONOURED spec.ports[1].protocol", "NOT_HONOURED spec.ports[2].protocol",
				"NOT_HONOURED spec.ports[3].protocol",
			},
		},
		{
			name: "another port", spec: "ports: [{number: 443, name: a, protocol: TLS, targetPort: 8443}]", ports: []string{"443 TLS"},
			problems: []string{"NOT_HONOURED spec.ports[0].targetPort"},
		},
		{
			name: "endpoints", spec: "ports: [{number: 443, name: a, protocol: TLS}]\nendpoints: [{address: 10.0.0.1}]\naddresses: [10.0.0.2]",
			ports: []string{"443 TLS"}, problems: []string{"NOT_HONOURED spec.addresses", "ENDPOINT_UNUSED spec.endpoints"},
		},
		{
			name: "selector", spec: "ports: [{number: 443, name: a, protocol: TLS}]\nworkloadSelector: {labels: {a: b}}", ports: []string{"443 TLS"},
			problems: []string{"ENDPOINT_UNUSED spec.workloadSelector"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entry(t, "h", 0, "hosts: ['*.example.com']\nresolution: DYNAMIC_DNS\n"+c.spec)
			shards, problems := external.Services([]external.Entry{e}, nil)
			if diff := cmp.Diff(c.problems, codes(problems)); diff != "" {
				t.Errorf("problems: %s", diff)
			}
			s := shards[shop("*.example.com")]
			if s == nil || s.Resolution != federation.DynamicDNS || len(s.Endpoints)+len(s.VIPs) > 0 || s.Selector != nil {
				t.Fatalf("the service is %+v", s)
			}
			var ports []string
			for _, p := range s.Ports {
				ports = append(ports, fmt.Sprintf("%d %s", p.Number, p.Protocol))
			}
			if diff := cmp.Diff(c.ports, ports); diff != "" {
				t.Errorf("ports: %s", diff)
			}
		})
	}
}
