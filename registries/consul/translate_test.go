package consul

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"isthmus.dev/isthmus/federation"
)

// at is a good instance on a port, changed by the given functions.
func at(id, address string, port int, change ...func(*entry)) entry {
	e := entry{
		Node:    &api.Node{ID: "id-" + id, Node: "node-" + id, Address: "10.0.0.9", Datacenter: "dc1"},
		Service: &api.AgentService{ID: id, Service: "web", Address: address, Port: port, Weights: api.AgentWeights{Passing: 1, Warning: 1}},
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func tags(tags ...string) func(*entry) { return func(e *entry) { e.Service.Tags = tags } }
func meta(key, value string) func(*entry) {
	return func(e *entry) { e.Service.Meta = map[string]string{key: value} }
}
func passing(weight int) func(*entry) { return func(e *entry) { e.Service.Weights.Passing = weight } }
func checked(id, status string) func(*entry) {
	return func(e *entry) { e.Checks = append(e.Checks, check{CheckID: id, Status: status}) }
}

func tagged(tag, address string) func(*entry) {
	return func(e *entry) { e.Service.TaggedAddresses = map[string]api.ServiceAddress{tag: {Address: address}} }
}

func testTranslator(t testing.TB, o Options) *translator {
	t.Helper()
	o.Cluster = "c1"
	o.setDefaults()
	names, err := parseNaming(o)
	if err != nil {
		t.Fatal(err)
	}
	return &translator{names: names, network: o.Network, datacenter: "dc1"}
}

// show is a translation as one line per fact.
func show(o *translation) string {
	var b strings.Builder
	if s := o.shard; s != nil {
		fmt.Fprintf(&b, "%s external=%v vips=%v\n", s.Resolution, s.MeshExternal, s.VIPs)
		for _, p := range s.Ports {
			fmt.Fprintf(&b, "port %s %d %s\n", p.Name, p.Number, p.Protocol)
		}
		for _, e := range s.Endpoints {
			fmt.Fprintf(&b, "%s %v %s w=%d %s\n", e.Address, e.Ports, e.Health, e.Weight, e.Locality)
		}
	}
	for _, p := range o.problems {
		fmt.Fprintf(&b, "! %s %s %s\n", p.Code, p.Object, p.Field)
	}
	return b.String()
}

func TestTranslate(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []entry
		want string
	}{
		{
			"plain",
			[]entry{at("a", "10.0.0.1", 80)},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"node address",
			[]entry{at("a", "", 80)},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.9 [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"two ports",
			[]entry{at("a", "10.0.0.1", 80), at("b", "10.0.0.2", 81, meta("protocol", "grpc"))},
			"CLIENT_SIDE_LB external=false vips=[]\nport http-80 80 HTTP\nport grpc-81 81 GRPC\n10.0.0.1 [{http-80 80}] HEALTHY w=1 /dc1\n10.0.0.2 [{grpc-81 81}] HEALTHY w=1 /dc1\n",
		},
		{
			"unknown protocol",
			[]entry{at("a", "10.0.0.1", 80, meta("protocol", "smoke"))},
			"CLIENT_SIDE_LB external=false vips=[]\nport tcp 80 TCP\n10.0.0.1 [{tcp 80}] HEALTHY w=1 /dc1\n! PROTOCOL_UNKNOWN Service web port 80\n",
		},
		{
			"B-C6 two protocols",
			[]entry{at("a", "10.0.0.1", 80, tags("protocol=http", "protocol|grpc"))},
			"CLIENT_SIDE_LB external=false vips=[]\nport tcp 80 TCP\n10.0.0.1 [{tcp 80}] HEALTHY w=1 /dc1\n! LABEL_IGNORED Service web Tags and Meta\n! PROTOCOL_CONFLICT Service web port 80\n",
		},
		{
			"B-C1 ports",
			[]entry{at("a", "10.0.0.1", 0), at("b", "10.0.0.2", -5), at("c", "10.0.0.3", 99999), at("d", "10.0.0.4", 80)},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.4 [{http 80}] HEALTHY w=1 /dc1\n! PORT_INVALID instance a Port\n! PORT_INVALID instance b Port\n! PORT_INVALID instance c Port\n",
		},
		{
			"B-C2 addresses",
			[]entry{
				at("a", "not an ip; $(x)", 80), at("b", "fe80::1%eth0", 80), at("c", "010.0.0.1", 80), at("d", "1.2.3", 80),
				at("e", "::ffff:10.0.0.5", 80),
			},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.5 [{http 80}] HEALTHY w=1 /dc1\n! ADDRESS_INVALID instance a Address\n! ADDRESS_INVALID instance b Address\n! ADDRESS_INVALID instance c Address\n! ADDRESS_INVALID instance d Address\n",
		},
		{
			"names",
			[]entry{at("a", "DB.example.org.", 80), at("b", "db2.example.org", 80)},
			"DNS_LB external=false vips=[]\nport http 80 HTTP\ndb.example.org [{http 80}] HEALTHY w=1 /dc1\ndb2.example.org [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"names among addresses",
			[]entry{at("a", "db.example.org", 80), at("b", "10.0.0.1", 80)},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n! ADDRESS_INVALID instance a Address\n",
		},
		{
			"B-C5 socket",
			[]entry{at("a", "10.0.0.1", 80, func(e *entry) { e.Service.SocketPath = "/var/run/docker.sock" })},
			"! SOCKET_REFUSED instance a SocketPath\n",
		},
		{
			"B-C7 weights",
			[]entry{at("a", "10.0.0.1", 80, passing(-1)), at("b", "10.0.0.2", 80, passing(70000)), at("c", "10.0.0.3", 80, passing(7))},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] DRAINING w=1 /dc1\n10.0.0.2 [{http 80}] HEALTHY w=65535 /dc1\n10.0.0.3 [{http 80}] HEALTHY w=7 /dc1\n! WEIGHT_INVALID instance a Weights\n! WEIGHT_INVALID instance b Weights\n",
		},
		{
			"B-C7 all zero",
			[]entry{at("a", "10.0.0.1", 80, passing(0)), at("b", "10.0.0.2", 80, passing(0))},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n10.0.0.2 [{http 80}] HEALTHY w=1 /dc1\n! WEIGHT_ALL_ZERO Service web Weights\n",
		},
		{
			"B-C10 health",
			[]entry{
				at("a", "10.0.0.1", 80, checked("x", "passing")), at("b", "10.0.0.2", 80, checked("x", "warning")),
				at("c", "10.0.0.3", 80, checked("x", "critical")),
				at("d", "10.0.0.4", 80, checked("x", "passing"), checked("y", "odd")),
				at("e", "10.0.0.5", 80, checked("_service_maintenance:e", "critical")), at("f", "10.0.0.6", 80, checked("serfHealth", "critical")),
			},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n10.0.0.2 [{http 80}] HEALTHY w=1 /dc1\n10.0.0.3 [{http 80}] UNHEALTHY w=1 /dc1\n10.0.0.4 [{http 80}] UNHEALTHY w=1 /dc1\n10.0.0.5 [{http 80}] UNHEALTHY w=1 /dc1\n10.0.0.6 [{http 80}] UNHEALTHY w=1 /dc1\n",
		},
		{"B-C14 kinds", []entry{
			at("a", "10.0.0.1", 80, func(e *entry) { e.Service.Kind = api.ServiceKindConnectProxy }),
			at("b", "10.0.0.2", 80, func(e *entry) { e.Service.Kind = api.ServiceKindMeshGateway }),
			at("c", "10.0.0.3", 80, func(e *entry) { e.Service.Kind = "new-kind" }),
			{},
			{Node: &api.Node{}},
		}, ""},
		{
			"external meta",
			[]entry{at("a", "10.0.0.1", 80, meta("external", "yes")), at("b", "10.0.0.2", 80)},
			"CLIENT_SIDE_LB external=true vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n10.0.0.2 [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"B-C14 external node",
			[]entry{at("a", "10.0.0.1", 80, func(e *entry) { e.Node.Meta = map[string]string{"external-node": "true"} })},
			"CLIENT_SIDE_LB external=true vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"virtual addresses",
			[]entry{at("a", "10.0.0.1", 80, tagged("consul-virtual", "240.0.0.1")), at("b", "10.0.0.2", 80, tagged("virtual", "fd00::1"))},
			"CLIENT_SIDE_LB external=false vips=[240.0.0.1/32 fd00::1/128]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n10.0.0.2 [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"shared tagged address",
			[]entry{at("a", "10.0.0.1", 80, tagged("vip", "10.9.9.9")), at("b", "10.0.0.2", 80, tagged("vip", "10.9.9.9"))},
			"CLIENT_SIDE_LB external=false vips=[10.9.9.9/32]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n10.0.0.2 [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"own tagged addresses",
			[]entry{at("a", "10.0.0.1", 80, tagged("lan_ipv4", "10.0.0.1")), at("b", "10.0.0.2", 80, tagged("public", "1.2.3.4"))},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n10.0.0.2 [{http 80}] HEALTHY w=1 /dc1\n",
		},
		{
			"bad virtual address",
			[]entry{at("a", "10.0.0.1", 80, tagged("virtual", "0.0.0.0"))},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 /dc1\n! VIP_INVALID instance a TaggedAddresses.virtual\n",
		},
		{
			"locality",
			[]entry{
				at("a", "10.0.0.1", 80, func(e *entry) { e.Node.Locality = &api.Locality{Region: "r", Zone: "z"} }),
				at("b", "10.0.0.2", 80, func(e *entry) { e.Service.Locality = &api.Locality{Region: "s"} }),
			},
			"CLIENT_SIDE_LB external=false vips=[]\nport http 80 HTTP\n10.0.0.1 [{http 80}] HEALTHY w=1 r/z\n10.0.0.2 [{http 80}] HEALTHY w=1 s\n",
		},
		{"several ports of an instance", []entry{at("a", "10.0.0.1", 0, func(e *entry) {
			e.Service.Ports = api.ServicePorts{{Name: "x", Port: 81}, {Name: "y", Port: 80, Default: true}}
		})}, "CLIENT_SIDE_LB external=false vips=[]\nport y 80 HTTP\nport x 81 HTTP\n10.0.0.1 [{y 80} {x 81}] HEALTHY w=1 /dc1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := testTranslator(t, Options{})
			o := tr.service("web", slices.Clone(c.in))
			if got := show(o); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			slices.Reverse(c.in)
			if again := tr.service("web", c.in); !again.equal(o) {
				t.Errorf("in another order:\n%sinstead of\n%s", show(again), show(o))
			}
		})
	}
}

func TestSeed57TagOrderTranslatesAlike(t *testing.T) {
	tr := testTranslator(t, Options{})
	a := tr.service("web", []entry{at("a", "10.0.0.1", 80, tags("version|v1", "zone=z", "canary"))})
	b := tr.service("web", []entry{at("a", "10.0.0.1", 80, tags("canary", "zone=z", "version|v1"))})
	if !a.equal(b) {
		t.Errorf("the order of tags makes a difference: %+v, %+v", a.shard, b.shard)
	}
	want := map[string]string{"version": "v1", "zone": "z", "tag.consul/canary": "true"}
	for key, value := range want {
		if got := a.shard.Endpoints[0].Labels[key]; got != value {
			t.Errorf("label %s is %q, want %q", key, got, value)
		}
	}
}

func TestBC06BC08LabelsAreBounded(t *testing.T) {
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf("k%03d=%s", i, strings.Repeat("x", 300))
	}
	huge := "big=" + strings.Repeat("y", 900_000)
	bad := []string{
		"", "new\nline", "ключ=1", "a b=1", "=1", "|", "network|n9", "topology.istio.io/cluster|c9",
		"isthmus.dev/x=1", huge, "bell=\a",
	}
	got, ignored := labels(map[string]string{"cluster-id": "c9", "version": "v2"}, append(bad, "version|v1", "topology.istio.io/network|n2"))
	if len(got) != 2 || got["version"] != "v2" || got[keyNetwork] != "n2" {
		t.Errorf("labels are %v, want the version of the meta and the network", got)
	}
	if len(ignored) != len(bad)+1 { // all but the empty tag, the meta cluster-id, the tag version
		t.Errorf("%d entries were ignored: %.200q", len(ignored), ignored)
	}
	if got, _ := labels(nil, many); len(got) != maxLabels {
		t.Errorf("%d labels, want the limit %d", len(got), maxLabels)
	}
	o := testTranslator(t, Options{}).service("web", []entry{at("a", "10.0.0.1", 80, tags(append(bad, many...)...))})
	for _, p := range o.problems {
		if len(p.Message) > 1000 {
			t.Errorf("a message of %d bytes: %.80s", len(p.Message), p.Message)
		}
	}
}

func TestWorkloadsAnswerByAddress(t *testing.T) {
	tr := testTranslator(t, Options{Network: "n1", Namespace: "shop"})
	o := tr.service("web", []entry{at("a", "10.0.0.1", 80, tags("version|v1")), at("b", "10.0.0.2", 80, tags(keyNetwork+"|n2"))})
	w := o.workloads[federation.WorkloadKey{Namespace: "shop", Name: "web/node-a/a"}]
	if w == nil || !slices.Equal(w.Addresses, []netip.Addr{netip.MustParseAddr("10.0.0.1")}) || w.Network != "n1" ||
		w.Labels["version"] != "v1" || w.Locality.Zone != "dc1" {
		t.Errorf("the workload of instance a is %+v", w)
	}
	if w := o.workloads[federation.WorkloadKey{Namespace: "shop", Name: "web/node-b/b"}]; w == nil || w.Network != "n2" {
		t.Errorf("the workload of instance b is %+v, want network n2", w)
	}
	if e := o.shard.Endpoints[0]; e.Workload != "shop/web/node-a/a" || e.UID != "id-a/a" || len(o.shard.ServiceAccounts) != 0 {
		t.Errorf("the endpoint of instance a is %+v", e)
	}
}

// TestF88NetworkThatIsNoneIsSaid: an instance is never placed in another network
// than it names without a word.
func TestF88NetworkThatIsNoneIsSaid(t *testing.T) {
	tr := testTranslator(t, Options{Network: "n1"})
	for name, want := range map[string]string{
		"n2": "n2", "Net_2.west": "Net_2.west", "n 2": "", "-n2": "",
		"a/b": "", strings.Repeat("n", 64): "",
	} {
		o := tr.service("web", []entry{at("a", "10.0.0.1", 80, tags(keyNetwork+"|"+name))})
		got := o.shard.Endpoints[0].Network
		said := slices.ContainsFunc(o.problems,
			func(p federation.Problem) bool { return p.Code == "NETWORK_INVALID" && p.Object == "instance a" })
		if want == "" && (got != "n1" || !said) || want != "" && (string(got) != want || said) {
			t.Errorf("%q: the endpoint is in %q, problems %+v", name, got, o.problems)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add("web",
		`[{"Node":{"ID":"i","Node":"n","Address":"10.0.0.1","Datacenter":"dc1"},"Service":{"ID":"web-1","Service":"web","Tags":["a|b","c=d","e"],"Meta":{"protocol":"grpc"},"Port":80,"Weights":{"Passing":1,"Warning":1},"TaggedAddresses":{"virtual":{"Address":"240.0.0.1"}}},"Checks":[{"CheckID":"x","Status":"passing"}]}]`)
	f.Add("WEB_", `[{"Service":{"Port":-5}},{"Node":{},"Service":{"Ports":[{"Port":99999}],"Weights":{"Passing":-1}}},null,{}]`)
	f.Fuzz(func(t *testing.T, name, body string) {
		var entries []entry
		if json.Unmarshal([]byte(body), &entries) != nil {
			return
		}
		tr := testTranslator(t, Options{})
		o := tr.service(name, entries)
		slices.Reverse(entries)
		if !tr.service(name, entries).equal(o) {
			t.Fatalf("the order of instances makes a difference for %s", body)
		}
		checkOffer(t, o)
	})
}

// checkOffer finds what no input may bring about.
func checkOffer(t *testing.T, o *translation) {
	t.Helper()
	if len(o.problems) > maxProblems+1 {
		t.Fatalf("%d problems", len(o.problems))
	}
	if o.shard == nil {
		return
	}
	ports := map[federation.EndpointPort]bool{}
	for _, p := range o.shard.Ports {
		ports[federation.EndpointPort{Name: p.Name, Number: p.Number}] = p.Number > 0 && p.Protocol != federation.Unsupported
	}
	for _, e := range o.shard.Endpoints {
		if _, unix := e.Address.Unix(); unix || e.Weight > 65535 || len(e.Labels) > maxLabels || len(e.Ports) == 0 {
			t.Fatalf("endpoint %+v", e)
		}
		for _, p := range e.Ports {
			if !ports[p] {
				t.Fatalf("endpoint port %v is none of the service's %v", p, o.shard.Ports)
			}
		}
	}
}
