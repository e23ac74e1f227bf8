package kubernetes

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
)

// fixture is a cluster as its objects say it, one YAML document each.
func fixture(t testing.TB, m *model, documents string) {
	t.Helper()
	for document := range strings.SplitSeq(documents, "\n---\n") {
		if strings.TrimSpace(document) != "" {
			m.set(parse(t, document))
		}
	}
}

func parse(t testing.TB, document string) object {
	t.Helper()
	var about metav1.TypeMeta
	read := func(into any) {
		if err := yaml.Unmarshal([]byte(document), into); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
	}
	read(&about)
	switch about.Kind {
	case "Service":
		var in corev1.Service
		read(&in)
		return parseService(&in, "cluster.local")
	case "EndpointSlice":
		var in discoveryv1.EndpointSlice
		read(&in)
		return parseSlice(&in)
	case "Pod":
		var in corev1.Pod
		read(&in)
		return parsePod(&in)
	case "Node":
		var in corev1.Node
		read(&in)
		return parseNode(&in)
	case "Namespace":
		var in corev1.Namespace
		read(&in)
		return parseNamespace(&in)
	}
	t.Fatalf("no kind in\n%s", document)
	return nil
}

// full is the model's full edit.
func full(m *model) federation.Edit {
	e, _ := m.edit(true)
	return e
}

func shardOf(t testing.TB, e federation.Edit, host string) *federation.Shard {
	t.Helper()
	for k, s := range e.Services.Set {
		if string(k.Hostname) == host {
			return s
		}
	}
	t.Fatalf("no service %s among %v", host, e.Services.Set)
	return nil
}

// wantProblems compares the problems by name; want are beginnings of the
// messages under "OBJECT FIELD".
func wantProblems(t testing.TB, e federation.Edit, want map[string]string) {
	t.Helper()
	for name, p := range e.Problems.Set {
		part, ok := want[name]
		if !ok {
			t.Errorf("problem nobody expects: %s: %s", name, p.Message)
		} else if !strings.Contains(p.Message, part) {
			t.Errorf("problem %s says %q, want something with %q", name, p.Message, part)
		}
		if p.Code == "" || p.Object == "" || p.Message == "" {
			t.Errorf("problem %s is incomplete: %+v", name, p)
		}
	}
	for name := range want {
		if _, ok := e.Problems.Set[name]; !ok {
			t.Errorf("no problem %q", name)
		}
	}
}

const meta1 = "apiVersion: v1\nkind: Service\nmetadata: {name: Web, namespace: shop, uid: u1, creationTimestamp: '2026-01-02T03:04:05Z', labels: {app: web}}\n"

func TestServiceTypes(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		resolution federation.Resolution
		vips       []string
		endpoints  []string
	}{
		{"ClusterIP", "type: ClusterIP, clusterIP: 10.96.0.9, clusterIPs: [10.96.0.9]", federation.ClientSideLB, []string{"10.96.0.9/32"}, nil},
		{"ClusterIPOldServer", "clusterIP: 10.96.0.9", federation.ClientSideLB, []string{"10.96.0.9/32"}, nil},
		{"DualStack", "clusterIPs: [10.96.0.9, 'fd00:96::9']", federation.ClientSideLB, []string{"10.96.0.9/32", "fd00:96::9/128"}, nil},
		{"Headless", "clusterIP: None, clusterIPs: [None]", federation.Passthrough, nil, nil},
		{"NodePort", "type: NodePort, clusterIPs: [10.96.0.9]", federation.ClientSideLB, []string{"10.96.0.9/32"}, nil},
		{
			"LoadBalancer", "type: LoadBalancer, clusterIPs: [10.96.0.9], externalIPs: [127.0.0.1]", federation.ClientSideLB,
			[]string{"10.96.0.9/32"},
			nil,
		},
		{"ExternalName", "type: ExternalName, externalName: API.example.com.", federation.DNSLB, nil, []string{"api.example.com"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, meta1+"spec: {"+test.spec+
				", ports: [{name: http, port: 80, targetPort: 8080}]}\nstatus: {loadBalancer: {ingress: [{ip: 169.254.169.254}]}}")
			e := full(m)
			wantProblems(t, e, nil)
			s := shardOf(t, e, "web.shop.svc.cluster.local")
			var vips, endpoints []string
			for _, v := range s.VIPs {
				vips = append(vips, v.String())
			}
			for _, e := range s.Endpoints {
				endpoints = append(endpoints, e.Address.String())
				if !slices.Equal(e.Ports, []federation.EndpointPort{{Name: "http", Number: 80}}) || e.Network != federation.DefaultNetwork {
					t.Errorf("endpoint %+v", e)
				}
			}
			if s.Resolution != test.resolution || !slices.Equal(vips, test.vips) || !slices.Equal(endpoints, test.endpoints) {
				t.Errorf("resolution %v, VIPs %v, endpoints %v", s.Resolution, vips, endpoints)
			}
			if s.UID != "u1" || s.Labels["app"] != "web" || s.Created.Year() != 2026 {
				t.Errorf("attributes of %+v", s)
			}
			if s.MeshExternal != (test.name == "ExternalName") {
				t.Errorf("mesh external: %v", s.MeshExternal)
			}
		})
	}
}

func TestExternalNameRefused(t *testing.T) {
	for name, part := range map[string]string{
		"127.0.0.1": "IP address", "fd00::1": "IP address", "web.shop.svc.cluster.local": "names itself",
		"Web.Shop.svc.cluster.local.": "names itself",
		"":                            "empty", "a b": "not a DNS name", "x\u0000y": "not a DNS name",
	} {
		s := parseService(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: name},
		}, "cluster.local")
		if len(s.shard.Endpoints) != 0 || len(s.problems) != 1 || !strings.Contains(s.problems[0].Message, part) ||
			s.problems[0].Field != "spec.externalName" {
			t.Errorf("%q: %v, %v", name, s.shard.Endpoints, s.problems)
		}
	}
}

func TestSeed03ProtocolOfPort(t *testing.T) {
	app := func(s string) *string { return &s }
	for _, test := range []struct {
		transport corev1.Protocol
		app       *string
		name      string
		want      federation.Protocol
	}{
		{"", nil, "", federation.TCP},
		{"TCP", nil, "web", federation.TCP},
		{"TCP", nil, "http", federation.HTTP},
		{"TCP", nil, "http-web", federation.HTTP},
		{"TCP", nil, "HTTP2-x", federation.HTTP2},
		{"TCP", nil, "grpc-web", federation.GRPCWeb},
		{"TCP", nil, "grpc-web-x", federation.GRPCWeb},
		{"TCP", nil, "grpc-webby", federation.GRPC},
		{"TCP", nil, "httpweb", federation.TCP},
		{"TCP", nil, "mongo-1", federation.Mongo},
		{"TCP", app("grpc"), "http", federation.GRPC},
		{"TCP", app("kubernetes.io/h2c"), "x", federation.HTTP2},
		{"TCP", app("kubernetes.io/ws"), "x", federation.HTTP},
		{"TCP", app("example.com/junk"), "http-a", federation.HTTP},
		{"TCP", app("example.com/junk"), "a", federation.TCP},
		{"TCP", app(""), "tls", federation.TLS},
		{"UDP", app("http"), "http", federation.UDP},
		{"TCP", nil, "udp-dns", federation.TCP},
		{"TCP", app("udp"), "dns", federation.TCP},
	} {
		if got, ok := protocolOf(test.transport, test.app, test.name); got != test.want || !ok {
			t.Errorf("%s %s %q: %s, want %s", test.transport, value(test.app, "-"), test.name, got, test.want)
		}
	}
	if _, ok := protocolOf("SCTP", nil, "http"); ok {
		t.Error("SCTP is supported")
	}
}

// TestK40PortsWithoutAProtocol: what a name or an appProtocol declares, and what is well known as
// a protocol in which the server speaks first, is not detected.
func TestK40PortsWithoutAProtocol(t *testing.T) {
	m := newModel("")
	fixture(t, m, meta1+`spec:
  clusterIPs: [10.96.0.9]
  ports:
  - {name: web, port: 80}
  - {name: tcp, port: 81}
  - {name: tcp-web, port: 82}
  - {name: app, port: 83, appProtocol: TCP}
  - {name: mysql, port: 84}
  - {name: mongo-a, port: 85}
  - {name: redis, port: 86}
  - {name: http, port: 87}
  - {name: mail, port: 25}
  - {name: dns, port: 53}
  - {name: db, port: 3306}
  - {name: docs, port: 27017}
  - {name: other, port: 3307}`)
	var undeclared []string
	for _, p := range shardOf(t, full(m), "web.shop.svc.cluster.local").Ports {
		if p.Undeclared {
			undeclared = append(undeclared, p.Name)
		}
	}
	if want := []string{"web", "other"}; !slices.Equal(undeclared, want) {
		t.Errorf("undeclared are %v, want %v", undeclared, want)
	}
}

func TestBO8PortsOfAService(t *testing.T) {
	m := newModel("")
	fixture(t, m, meta1+`spec:
  clusterIPs: [10.96.0.9]
  ports:
  - {name: http, port: 80}
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
  - {name: sctp, port: 90, protocol: SCTP}
  - {port: 81}
  - {name: zero, port: 0}
  - {name: big, port: 70000}
  - {name: http, port: 82}
  - {name: again, port: 80}
  - {name: junk, port: 83, appProtocol: "example.com/junk"}`)
	e := full(m)
	want := []federation.Port{
		{Name: "http", Number: 80, Protocol: federation.HTTP},
		{Name: "dns", Number: 53, Protocol: federation.UDP},
		{Name: "dns-tcp", Number: 53, Protocol: federation.TCP},
		{Name: "junk", Number: 83, Protocol: federation.TCP, Undeclared: true},
	}
	if got := shardOf(t, e, "web.shop.svc.cluster.local").Ports; !slices.Equal(got, want) {
		t.Errorf("ports %v", got)
	}
	wantProblems(t, e, map[string]string{
		"Service shop/Web spec.ports[3].protocol": "SCTP", "Service shop/Web spec.ports[4].name": "must name",
		"Service shop/Web spec.ports[5].port": "0 is not a port",
		"Service shop/Web spec.ports[6].port": "70000", "Service shop/Web spec.ports[7]": "used before",
		"Service shop/Web spec.ports[8]":             "used before",
		"Service shop/Web spec.ports[9].appProtocol": "treated as TCP",
	})
}

func TestExportTo(t *testing.T) {
	for annotation, want := range map[string]string{
		"": "", "*": "*", " . , b,a ,b": ".|b|a", "~": "~", "A_B": ".", "ok,No Namespace": "ok", ",,": ".", strings.Repeat("a,", 20000): ".",
	} {
		n := problemsOf("Service", key{Name: "x"})
		if got := strings.Join(exportTo(annotation, &n), "|"); got != want {
			t.Errorf("%.20q: %s, want %s", annotation, got, want)
		}
	}
}

func TestTrafficDistribution(t *testing.T) {
	for wish, part := range map[string]string{
		"PreferClose": "", "PreferSameZone": "", "PreferSameNode": "taken as PreferSameZone", "PreferFar": `"PreferFar" is not known`,
	} {
		m := newModel("")
		fixture(t, m, meta1+"spec: {clusterIPs: [10.96.0.9], trafficDistribution: "+wish+", ports: [{name: http, port: 80}]}")
		e, want := full(m), map[string]string{}
		if part != "" {
			want["Service shop/Web spec.trafficDistribution"] = part
		}
		if got := shardOf(t, e, "web.shop.svc.cluster.local").TrafficDistribution; got != wish {
			t.Errorf("%s is shown as %q", wish, got)
		}
		wantProblems(t, e, want)
	}
}

// A Service whose callers shall stay on their node is reported: the hub does not tell
// nodes apart.
func TestR31InternalTrafficPolicyLocalIsReported(t *testing.T) {
	for policy, part := range map[string]string{"Cluster": "", "Local": "Local is not supported"} {
		m := newModel("")
		fixture(t, m, meta1+"spec: {clusterIPs: [10.96.0.9], internalTrafficPolicy: "+policy+", ports: [{name: http, port: 80}]}")
		e, want := full(m), map[string]string{}
		if part != "" {
			want["Service shop/Web spec.internalTrafficPolicy"] = part
		}
		wantProblems(t, e, want)
		e.Source = federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}
		s, _ := federation.Next(federation.Empty(), e)
		var codes []string
		for p := range s.Problems("c1") {
			codes = append(codes, p.Code)
		}
		if c, _ := s.Cluster("c1"); len(codes) != len(want) || c.Problems != len(want) || len(want) > 0 && codes[0] != codeInternalPolicy {
			t.Errorf("%s: the cluster's status has %d problems, %v", policy, c.Problems, codes)
		}
	}
}

// TestR85SessionAffinityIsReported: a Service whose clients shall stay with an endpoint.
func TestR85SessionAffinityIsReported(t *testing.T) {
	for affinity, want := range map[string]map[string]string{
		"None": {}, "ClientIP": {"Service shop/Web spec.sessionAffinity": "a DestinationRule with consistentHash.useSourceIp"},
	} {
		m := newModel("")
		fixture(t, m, meta1+"spec: {clusterIPs: [10.96.0.9], sessionAffinity: "+affinity+", ports: [{name: http, port: 80}]}")
		wantProblems(t, full(m), want)
	}
}

// TestG78SessionAffinityOfAService, with the default of Kubernetes.
func TestG78SessionAffinityOfAService(t *testing.T) {
	for says, want := range map[string]uint32{
		"sessionAffinity: None": 0, "sessionAffinity: ClientIP": 10800,
		"sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}": 60,
		"sessionAffinity: None, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}":     0,
		"sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: -1}}": 10800,
	} {
		m := newModel("")
		fixture(t, m, meta1+"spec: {clusterIPs: [10.96.0.9], "+says+", ports: [{name: http, port: 80}]}")
		if got := shardOf(t, full(m), "web.shop.svc.cluster.local").Affinity.Seconds; got != want {
			t.Errorf("%s: clients stay for %d s, want %d", says, got, want)
		}
	}
}

const serviceYAML = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, annotations: {networking.istio.io/exportTo: "., blue"}}
spec: {clusterIPs: [10.96.0.9], trafficDistribution: PreferClose, ports: [{name: http, port: 80}, {name: admin, port: 9000}]}
`

const podYAML = `apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, uid: p1, labels: {app: web, version: v1, security.istio.io/tlsMode: istio}}
spec:
  nodeName: n1
  serviceAccountName: web
  containers:
  - name: main
    ports: [{name: probe, containerPort: 8086}]
    readinessProbe: {httpGet: {port: probe, path: /ready}}
    livenessProbe: {tcpSocket: {port: 8080}}
    startupProbe: {grpc: {port: 8086, service: up}}
  - name: side
    readinessProbe: {httpGet: {port: 8443, scheme: HTTPS, path: /}}
    livenessProbe: {exec: {command: ["true"]}}
    startupProbe: {tcpSocket: {port: nowhere}}
status: {phase: Running, conditions: [{type: Ready, status: "True"}], podIP: 10.1.0.7, podIPs: [{ip: 10.1.0.7}, {ip: 'fd00:1::7'}]}
`

const nodeYAML = `apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1, topology.istio.io/subzone: rack-1}}
`

const sliceYAML = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-a, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}, {name: admin, port: 9001}]
endpoints:
- {addresses: [10.1.0.7], nodeName: n1, zone: eu-9, targetRef: {kind: Pod, name: web-1, namespace: shop, uid: p1}}
- {addresses: [10.1.0.8], nodeName: n2, zone: eu-2, conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.1.0.9], conditions: {ready: false}}
`

func TestSeed02EndpointsOfPods(t *testing.T) {
	m := newModel("net-1")
	fixture(t, m, strings.Join([]string{serviceYAML, podYAML, nodeYAML, sliceYAML}, "---\n"))
	e := full(m)
	s := shardOf(t, e, "web.shop.svc.cluster.local")
	ports := []federation.EndpointPort{{Name: "http", Number: 8080}, {Name: "admin", Number: 9001}}
	want := []federation.Endpoint{
		{
			Address: ip("10.1.0.7"), Ports: ports, Network: "net-1", Locality: federation.Locality{Region: "eu", Zone: "eu-1", SubZone: "rack-1"},
			Health: federation.Healthy,
			Labels: map[string]string{"app": "web", "version": "v1", "security.istio.io/tlsMode": "istio"}, ServiceAccount: "shop/web",
			TLSMode: "istio", Workload: "shop/web-1", UID: "p1",
		},
		{Address: ip("10.1.0.8"), Ports: ports, Network: "net-1", Locality: federation.Locality{Zone: "eu-2"}, Health: federation.Draining},
		{Address: ip("10.1.0.9"), Ports: ports, Network: "net-1", Health: federation.Unhealthy},
	}
	wantEndpoints(t, s, want)
	if s.TrafficDistribution != "PreferClose" || !slices.Equal(s.ExportTo, []string{".", "blue"}) {
		t.Errorf("shard %+v", s)
	}
	wantProblems(t, e, map[string]string{"Pod shop/web-1 spec.containers[1].startupProbe.tcpSocket.port": "no port named"})
	w := e.Workloads.Set[federation.WorkloadKey{Namespace: "shop", Name: "web-1"}]
	wantWorkload := &federation.Workload{
		Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.7"), netip.MustParseAddr("fd00:1::7")}, Network: "net-1",
		Locality: want[0].Locality, Labels: want[0].Labels, ServiceAccount: "shop/web", TLSMode: "istio", Health: federation.Healthy,
		Probes: []federation.Probe{
			{Kind: "readiness", Container: "main", Protocol: "HTTP", Port: 8086, Path: "/ready"},
			{Kind: "liveness", Container: "main", Protocol: "TCP", Port: 8080},
			{Kind: "startup", Container: "main", Protocol: "GRPC", Port: 8086, Service: "up"},
			{Kind: "readiness", Container: "side", Protocol: "HTTPS", Port: 8443, Path: "/"},
		},
		ManagementPorts: []federation.Port{
			{Name: "mgmt-8086", Number: 8086, Protocol: federation.HTTP},
			{Name: "mgmt-8080", Number: 8080, Protocol: federation.TCP},
			{Name: "mgmt-8443", Number: 8443, Protocol: federation.HTTPS},
		},
	}
	if w == nil || !w.Equal(wantWorkload) {
		t.Errorf("workload\n%+v, want\n%+v", w, wantWorkload)
	}
}

// TestProbesOfSidecars: an init container that goes on running is probed as the
// others are; one that ends is not.
func TestProbesOfSidecars(t *testing.T) {
	p := parse(t, `
kind: Pod
metadata: {name: web-1, namespace: shop}
spec:
  initContainers:
  - {name: setup, readinessProbe: {tcpSocket: {port: 1}}}
  - {name: proxy, restartPolicy: Always, startupProbe: {httpGet: {port: 15021, path: /healthz}}}
  containers:
  - {name: main, livenessProbe: {tcpSocket: {port: 80}}}
`).(*pod)
	want := []federation.Probe{
		{Kind: "startup", Container: "proxy", Protocol: "HTTP", Port: 15021, Path: "/healthz"},
		{Kind: "liveness", Container: "main", Protocol: "TCP", Port: 80},
	}
	if !slices.Equal(p.probes, want) || len(p.management) != 2 {
		t.Errorf("probes %+v, want %+v; management ports %+v", p.probes, want, p.management)
	}
}

func wantEndpoints(t testing.TB, s *federation.Shard, want []federation.Endpoint) {
	t.Helper()
	got := slices.SortedFunc(slices.Values(s.Endpoints), func(a, b federation.Endpoint) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Network, b.Network))
	})
	if !slices.EqualFunc(got, want, func(a, b federation.Endpoint) bool { return a.Equal(&b) }) {
		t.Errorf("endpoints\n%+v, want\n%+v", got, want)
	}
}

func ip(s string) federation.Address { return federation.IPAddress(netip.MustParseAddr(s)) }

func sorted(in []string) string {
	slices.Sort(in)
	return strings.Join(in, " ")
}

// TestR82ExternalNamesWithoutPorts: one that may be a service of a cluster takes the
// ports of its target; any other is reported.
func TestR82ExternalNamesWithoutPorts(t *testing.T) {
	for target, reported := range map[string]bool{
		"Web.shop.svc.cluster.local.": false, "web.shop.svc.other.domain": false,
		"db.example.com": true,
	} {
		s := parseService(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alias"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: target},
		}, "cluster.local")
		if want := federation.Hostname(strings.ToLower(strings.TrimSuffix(target, "."))); s.shard.ExternalName != want {
			t.Errorf("%s is an alias of %q", target, s.shard.ExternalName)
		}
		if len(s.problems) > 0 != reported {
			t.Errorf("%s has the problems %v", target, s.problems)
		}
	}
}
