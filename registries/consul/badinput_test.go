package consul

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// codes are the problems of a view as CODE OBJECT, with how often each occurs.
func codes(v registrytest.View) map[string]int {
	out := map[string]int{}
	for _, p := range v.Problems {
		out[p.Code+" "+p.Object]++
	}
	return out
}

func withMeta(pairs ...string) map[string]any {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return map[string]any{"Meta": m}
}

func withWeights(passing int) map[string]any {
	return map[string]any{"Weights": map[string]int{"Passing": passing, "Warning": 1}}
}

// registerBad registers what a real Consul accepts and the hub must not use,
// beside a good service.
func registerBad(r *rig) {
	r.register("good", "good", "10.0.0.1", 80)
	for i, port := range []int{0, -5, 99999} { // B-C1
		r.register("ports", fmt.Sprintf("port-%d", i), "10.0.1.1", port)
	}
	r.register("ports", "port-good", "10.0.1.2", 80)
	for i, address := range []string{"not an ip; $(x)", "fe80::1%eth0", "010.0.0.1"} { // B-C2
		r.register("addresses", fmt.Sprintf("address-%d", i), address, 80)
	}
	r.register("names", "names", "db.example.org", 80)
	for i, name := range []string{"a_b", "a.b", "größe", "bell\a", "nul\x00nul", "..%2f", strings.Repeat("x", 10_000)} { // B-C4
		r.register(name, fmt.Sprintf("name-%d", i), "10.0.4.1", 80)
	}
	r.register("Twice", "twice-1", "10.0.4.2", 80)
	r.register("twice", "twice-2", "10.0.4.3", 80)
	r.register("Upper", "upper", "10.0.4.4", 80)
	r.register("socket", "socket", "", 0, map[string]any{"SocketPath": "/var/run/docker.sock"}) // B-C5
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf("k%d=%s", i, strings.Repeat("v", 300))
	}
	r.register("tags", "tags", "10.0.6.1", 80,
		withTags(append(many, "", "a\nb", strings.Repeat("t", 300_000), "protocol=http", "protocol|grpc")...)) // B-C6
	for i, weight := range []int{
		-1, 70000,
		5,
	} { // B-C7
		r.register("weights", fmt.Sprintf("weight-%d", i), fmt.Sprintf("10.0.7.%d", i+1), 80, withWeights(weight))
	}
	r.register("reserved", "reserved", "10.0.8.1", 80, withMeta("cluster-id", "c9", "network", "n9")) // B-C8
	r.register("renamed-from", "renamed", "10.0.9.1", 80)                                             // B-C9
	r.register("renamed-to", "renamed", "10.0.9.1", 80)
	r.register("proxy", "proxy", "10.0.14.1", 80,
		map[string]any{"Kind": "connect-proxy", "Proxy": map[string]any{"DestinationServiceName": "good"}}) // B-C14
}

func TestBC01ToBC14InARealConsul(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	registerBad(r)
	recorder, _ := registrytest.Start(t, r)
	v := recorder.WaitPhase(t, federation.Ready)
	want := map[string]string{
		"good": "10.0.0.1", "ports": "10.0.1.2", "names": "db.example.org", "upper": "10.0.4.4", "tags": "10.0.6.1",
		"weights": "10.0.7.1 10.0.7.2 10.0.7.3", "reserved": "10.0.8.1", "renamed-to": "10.0.9.1",
	}
	got := map[string]string{}
	for key, s := range v.Services {
		var addresses []string
		for _, e := range s.Endpoints {
			addresses = append(addresses, e.Address.String())
		}
		got[strings.TrimSuffix(string(key.Hostname), ".service.consul")] = strings.Join(addresses, " ")
	}
	if !maps.Equal(got, want) {
		t.Errorf("services are\n%v\nwant\n%v", got, want)
	}
	found := codes(v)
	for _, p := range []string{
		"PORT_INVALID instance port-0", "PORT_INVALID instance port-1", "PORT_INVALID instance port-2",
		"ADDRESS_INVALID instance address-0", "ADDRESS_INVALID instance address-1", "ADDRESS_INVALID instance address-2",
		"NAME_INVALID Service a_b", "NAME_INVALID Service a.b", "NAME_INVALID Service größe", `NAME_INVALID Service "bell\a"`,
		"NAME_INVALID Service ..%2f",
		"NAME_CONFLICT Service Twice", "NAME_CONFLICT Service twice", "SOCKET_REFUSED instance socket",
		"PROTOCOL_CONFLICT Service tags", "LABEL_IGNORED Service tags", "LABEL_IGNORED Service reserved",
	} {
		if found[p] != 1 {
			t.Errorf("no problem %s among %v", p, found)
		}
	}
	for key, p := range v.Problems {
		if len(key)+len(p.Object)+len(p.Message) > 2000 || p.Message == "" {
			t.Errorf("a problem without a message or too large: %.100q", p)
		}
	}
	// Consul itself answers 1 for a weight that it should not have accepted.
	if e := v.Services[r.Key("weights")].Endpoints; e[0].Weight != 1 || e[1].Weight != 1 || e[2].Weight != 5 {
		t.Errorf("the weights -1, 70000 and 5 came as %+v", e)
	}
	before := recorder.View().Edits
	r.deregister("twice-1")
	recorder.Wait(t, "the one that is left of two names", func(v registrytest.View) bool {
		return v.Services[r.Key("twice")] != nil && codes(v)["NAME_CONFLICT Service twice"] == 0
	})
	if after := recorder.View().Edits; after != before+1 && !stopped(recorder) {
		t.Errorf("%d edits for one name that went", after-before)
	}
}

// TestBC04OddNodesTagsAndMetadataOfARealConsul: what Consul stores of nodes, tags and metadata makes no service, changes none, and
// makes no two workloads of one name.
func TestBC04OddNodesTagsAndMetadataOfARealConsul(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	nodes := []string{"größe", "a/b", "a%2fb", "..", "A", "two words", "new\nline", strings.Repeat("n", 600)}
	for i, node := range nodes {
		service := registered("nodes", "same", fmt.Sprintf("10.0.1.%d", i+1), 80)
		service["Node"] = node
		r.Put("/v1/catalog/register", service)
	}
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprintf("tag-%d", i)
	}
	r.register("tags", "tags", "10.0.2.1", 80, withTags(many...))
	r.register("settings", "settings", "10.0.3.1", 80, withMeta(
		"isthmus_dev-unhealthy", "yes", "kubernetes_io-service-name", "other", "namespace", "kube-system",
		"service-account", "admin", "hostname", "other.example.com", "external", ""))
	r.register("six", "six", "fd00::7", 80)
	recorder, _ := registrytest.Start(t, r)
	v := recorder.WaitPhase(t, federation.Ready)
	workloads := map[string]bool{}
	for _, e := range v.Services[r.Key("nodes")].Endpoints {
		workloads[e.Workload] = true
		if _, shown := v.Workloads[federation.WorkloadKey{Name: strings.TrimPrefix(e.Workload, "/")}]; !shown {
			t.Errorf("the workload %q of an endpoint does not exist", e.Workload)
		}
	}
	if len(workloads) != len(nodes)-1 || codes(v)["NAME_INVALID instance same"] != 1 {
		t.Errorf("%d nodes, of which one has too long a name, have the workloads %v and the problems %v", len(nodes), workloads, codes(v))
	}
	if e := v.Services[r.Key("tags")].Endpoints[0]; len(e.Labels) != maxLabels || codes(v)["LABEL_IGNORED Service tags"] != 1 ||
		codes(v)["LIMIT Service tags"] != 1 {
		t.Errorf("%d tags make %d labels, and the problems %v", len(many), len(e.Labels), codes(v))
	}
	if s := v.Services[r.Key("settings")]; s == nil || s.MeshExternal || len(s.Endpoints) != 1 ||
		s.Endpoints[0].Health != federation.Healthy || s.Endpoints[0].ServiceAccount != "" ||
		s.Endpoints[0].Labels["namespace"] != "kube-system" {
		t.Errorf("metadata that look like settings make %+v", s)
	}
	if s := v.Services[r.Key("six")]; s == nil || s.Endpoints[0].Address.String() != "fd00::7" {
		t.Errorf("the address of IPv6 is that of %+v", s)
	}
	if len(v.Services) != 4 {
		t.Errorf("there are %d services, want 4: %v", len(v.Services), v.Services)
	}
}

func TestVirtualAddressesOfARealConsul(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	r.register("native", "native", "10.0.0.1", 80, map[string]any{"Connect": map[string]any{"Native": true}})
	r.register("tagged", "tagged", "10.0.0.2", 80, map[string]any{"TaggedAddresses": map[string]any{
		"virtual": map[string]any{"Address": "10.96.0.9", "Port": 80}, "lan": map[string]any{"Address": "10.0.0.2", "Port": 80},
	}})
	r.Put("/v1/catalog/register", map[string]any{
		"Node": "sick", "Address": "10.0.0.3", "Service": map[string]any{"ID": "sick", "Service": "sick", "Port": 80},
		"Checks": []map[string]any{{
			"CheckID": "sick", "ServiceID": "sick", "Name": "sick", "Status": "critical",
			"Output": strings.Repeat("o", 100_000),
		}},
	})
	recorder, _ := registrytest.Start(t, r)
	v := recorder.WaitPhase(t, federation.Ready)
	if s := v.Services[r.Key("tagged")]; s == nil || len(s.VIPs) != 1 || s.VIPs[0].String() != "10.96.0.9/32" {
		t.Errorf("the service with a virtual address is %+v", s)
	}
	if s := v.Services[r.Key("native")]; s == nil || len(s.VIPs) != 1 || !strings.HasPrefix(s.VIPs[0].String(), "240.") {
		t.Errorf("the service with Consul's own virtual address is %+v", s)
	}
	if s := v.Services[r.Key("sick")]; s == nil || s.Endpoints[0].Health != federation.Unhealthy ||
		s.Endpoints[0].Address.String() != "10.0.0.3" {
		t.Errorf("the critical instance is %+v", s)
	}
	if v.Services[r.Key("consul")] != nil {
		t.Error("Consul's own service is offered")
	}
}

func TestBC13ServicesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{MaxServices: 5})
	r.fill("web", 8)
	recorder, _ := registrytest.Start(t, r)
	v := recorder.WaitPhase(t, federation.Ready)
	if len(v.Services) != 5 || v.Services[r.Key("web-004")] == nil || codes(v)["LIMIT Service catalogue"] != 1 {
		t.Errorf("%d services and %v, want the first five and a problem", len(v.Services), codes(v))
	}
	r.Delete(t, "web-000")
	recorder.Wait(t, "the next service to take the free place", func(v registrytest.View) bool { return v.Services[r.Key("web-005")] != nil })
}
