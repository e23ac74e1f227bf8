package envoy_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// startNames answers questions for the addresses of the names, which commas separate, until the test ends.
func startNames(t *testing.T, in *testbed.Namespace, address string, names map[string]string) {
	t.Helper()
	var conn net.PacketConn
	err := in.Run(func() (err error) {
		conn, err = net.ListenPacket("udp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		packet := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(answerOf(packet[:n], names), from)
		}
	}()
}

// answerOf answers the one question of a DNS request: with the addresses of its type, if there are some, or that there is no
// such name.
func answerOf(request []byte, names map[string]string) []byte {
	const header, ofType, noError, noName = 12, 4, 0x8180, 0x8183
	var labels []string
	end := header
	for end < len(request) && request[end] != 0 {
		next := end + 1 + int(request[end])
		labels = append(labels, string(request[end+1:next]))
		end = next
	}
	question := request[header : end+1+ofType]
	addresses, known := names[strings.ToLower(strings.Join(labels, "."))]
	flags, answers := uint16(noName), uint16(0)
	var records []byte
	if known {
		flags = noError
		typ := question[len(question)-3]
		for text := range strings.SplitSeq(addresses, ",") {
			if data := netip.MustParseAddr(text).AsSlice(); typ == recordOf[len(data)] {
				answers++
				records = append(append(records, 0xc0, header, 0, typ, 0, 1, 0, 0, 0, 60, 0, byte(len(data))), data...)
			}
		}
	}
	answer := append([]byte{}, request[:2]...)
	for _, field := range []uint16{flags, 1, answers, 0, 0} {
		answer = binary.BigEndian.AppendUint16(answer, field)
	}
	return append(append(answer, question...), records...)
}

// recordOf is the type of the records of addresses that have so many bytes: A and AAAA.
var recordOf = map[int]byte{4: 1, 16: 28}

// askAt has the proxy of the bootstrap resolve the names that callers ask for at a server of the test.
func askAt(config []byte, server string) []byte {
	resolver := `"typedDnsResolverConfig": {"name": "envoy.network.dns_resolver.cares", "typedConfig": {
		"@type": "type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig",
		"resolvers": [{"socketAddress": {"address": "` + server + `", "portValue": 53, "protocol": "UDP"}}]}}, `
	return regexp.MustCompile(`"dnsLookupFamily"`).ReplaceAll(config, []byte(resolver+`"dnsLookupFamily"`))
}

// dynamicEntry is a ServiceEntry of which proxies resolve the names.
func dynamicEntry(port uint16, protocol federation.Protocol) *federation.Shard {
	entry := external(port, protocol)
	entry.Resolution = federation.DynamicDNS
	return entry
}

// resolveNames adds a ServiceEntry of which proxies resolve the names, and its service.
func (w *fixture) resolveNames(t fataler, entry *federation.Shard) *fixture {
	t.Helper()
	w.config(t, `{kind: ServiceEntry, metadata: {name: apis, namespace: shop}, spec: {hosts: ["*.example.com"], resolution: DYNAMIC_DNS}}`)
	return w.say("c1", key("*.example.com"), entry)
}

const dynamicRoute = oneGateway + `---
kind: VirtualService
metadata: {name: apis, namespace: shop}
spec: {hosts: ["*"], gateways: [edge/front], http: [{route: [{destination: {host: "*.example.com"}}]}]}`

// answersOf compares the answers to requests at the URL for hosts with the wanted status codes; those with
// 200 come from the server plain.
func answersOf(t *testing.T, caller *testbed.Namespace, url string, want map[string]int) {
	t.Helper()
	for host, want := range want {
		r := caller.Get(url, "Host", host)
		if r.Err != nil || r.Status != want || want == 200 && r.Echo(t).Name != "plain" {
			t.Errorf("a request for %s at %s: answered with %d %q %v, want %d", host, url, r.Status, r.Body, r.Err, want)
		}
	}
}

// gatewayResolves has a gateway, whose route is for all hosts, resolve the names of the entry alone.
func gatewayResolves(t *testing.T, network *testbed.Network, caller *testbed.Namespace, w *fixture) {
	t.Helper()
	const address = "10.7.0.8"
	ns := testbed.NewNamespace(t, "gateway")
	ns.Join(network, address)
	config := askAt(sidecarConfig(t, ingress(t, address), w.config(t, dynamicRoute).snapshot), "10.7.0.3")
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Config: config, Namespace: ns}).WaitReady(time.Minute)
	answersOf(t, caller, "http://"+address+"/", map[string]int{
		"a.plain.example.com": 200, "example.org": 421, "local.example.com": 503, "unknown.example.com": 503,
	})
}

// The sidecar of a captured workload resolves the names of a wildcard for which the workload asks,
// in requests and in TLS, whatever address it dialed. It goes to no other port, no other name, and
// to no address of the machine. A gateway does the same for its clients.
func TestK59NamesThatCallersAskForAreResolved(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "live")
	outside(t, network, authority, "10.7.0.2", 443)
	plain, _ := pod(t, network, "10.7.0.3", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "plain", Namespace: plain, HTTP: []int{80, 8081}})
	startNames(t, plain, "10.7.0.3:53", map[string]string{
		"tls.example.com": "10.7.0.2", "a.plain.example.com": "10.7.0.3", "local.example.com": "127.0.0.1", "example.org": "10.7.0.3",
	})
	both := dynamicEntry(80, federation.HTTP)
	both.Ports = append(both.Ports, federation.Port{Name: "tls", Number: 443, Protocol: federation.TLS})
	fixture := newFixture().apply(federation.Edit{Settings: &federation.Settings{}}).attach("c1", "").resolveNames(t, both)
	caller := testbed.NewNamespace(t, "caller")
	caller.Join(network, "10.7.0.9")
	loopback := netip.MustParseAddr("127.0.0.1")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "workload", Namespace: caller, Address: loopback, HTTP: []int{80}})
	testbed.StartEcho(t, testbed.EchoOptions{
		Name: "workload", Namespace: caller, Address: loopback, HTTP: []int{443},
		TLS: authority.TLS(testbed.Subject{Name: "workload", Hosts: []string{"*.example.com"}}),
	})
	n := parse(t, "sidecar~10.7.0.9~pod.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	config := askAt(sidecarConfig(t, n, fixture.snapshot), "10.7.0.3")
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "caller", Config: config, Namespace: caller}).WaitReady(time.Minute)
	caller.Capture(testbed.ProxyUID)

	answersOf(t, caller, "http://192.0.2.1/", map[string]int{
		"a.plain.example.com":      200,
		"A.Plain.Example.com:80":   200,
		"a.plain.example.com:8081": 421, // another port
		"local.example.com":        503, // an address of the machine
		"unknown.example.com":      503,
	})
	if name, err := secureGet(t, caller, authority, "https://192.0.2.1/", "tls.example.com"); err != nil || name != "10.7.0.2" {
		t.Errorf("TLS for tls.example.com: %q answers, %v", name, err)
	}
	if name, err := secureGet(t, caller, authority, "https://192.0.2.1/", "local.example.com"); err == nil {
		t.Errorf("TLS for local.example.com: %q answers, though the address is that of the machine", name)
	}
	client, _ := pod(t, network, "10.7.0.10", nil)
	gatewayResolves(t, network, client, fixture)
}
