package envoy_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// liveRules are about one service for each thing that a rule can do; $DIR has
// the certificates.
const liveRules = `kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop]
  http:
  - match: [{headers: {version: {exact: v2}}}]
    route: [{destination: {host: web.shop, subset: v2}}]
  - route: [{destination: {host: web.shop, subset: v1}}]
---
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.shop, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}
---
kind: DestinationRule
metadata: {name: flaky, namespace: shop}
spec: {host: flaky.shop, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 2, baseEjectionTime: 600s, maxEjectionPercent: 100}}}
---
kind: DestinationRule
metadata: {name: narrow, namespace: shop}
spec: {host: narrow.shop, trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1}}}}
---
kind: DestinationRule
metadata: {name: sticky, namespace: shop}
spec: {host: sticky.shop, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user}}}}
---
kind: DestinationRule
metadata: {name: simple, namespace: shop}
spec: {host: simple.shop, trafficPolicy: {tls: {mode: SIMPLE, caCertificates: $DIR/ca.pem}}}
---
kind: DestinationRule
metadata: {name: named, namespace: shop}
spec: {host: named.shop, trafficPolicy: {tls: {mode: SIMPLE, caCertificates: $DIR/ca.pem, sni: server.example.com, subjectAltNames: [server.example.com]}}}
---
kind: DestinationRule
metadata: {name: wrong, namespace: shop}
spec: {host: wrong.shop, trafficPolicy: {tls: {mode: SIMPLE, caCertificates: $DIR/ca.pem, sni: server.example.com, subjectAltNames: [other.example.com]}}}
---
kind: DestinationRule
metadata: {name: stranger, namespace: shop}
spec: {host: stranger.shop, trafficPolicy: {tls: {mode: SIMPLE, sni: server.example.com, subjectAltNames: [server.example.com]}}}
---
kind: DestinationRule
metadata: {name: mutual, namespace: shop}
spec: {host: mutual.shop, trafficPolicy: {tls: {mode: MUTUAL, clientCertificate: $DIR/cert.pem, privateKey: $DIR/key.pem, caCertificates: $DIR/ca.pem, sni: server.example.com, subjectAltNames: [server.example.com]}}}
---
kind: DestinationRule
metadata: {name: mesh, namespace: shop}
spec: {host: mesh.shop, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
---
kind: DestinationRule
metadata: {name: spread, namespace: shop}
spec: {host: spread.shop, trafficPolicy: {loadBalancer: {localityLbSetting: {distribute: [{from: "*", to: {eu: 80, us: 20}}]}}}}
---
kind: DestinationRule
metadata: {name: ordered, namespace: shop}
spec: {host: ordered.shop, trafficPolicy: {loadBalancer: {localityLbSetting: {failoverPriority: [version=v2]}}, outlierDetection: {consecutive5xxErrors: 3, baseEjectionTime: 600s, maxEjectionPercent: 100}}}
---
kind: DestinationRule
metadata: {name: coded, namespace: shop}
spec: {host: coded.shop, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 2, outlierDetectionHttpErrorCodes: [404], baseEjectionTime: 600s, maxEjectionPercent: 100}}}
---
kind: DestinationRule
metadata: {name: announced, namespace: shop}
spec: {host: announced.shop, trafficPolicy: {proxyProtocol: {version: V1}}}
---
kind: DestinationRule
metadata: {name: tunnelled, namespace: shop}
spec: {host: tunnelled.shop, trafficPolicy: {tunnel: {targetHost: far.example.com, targetPort: 443}}}
---
kind: DestinationRule
metadata: {name: binary, namespace: shop}
spec: {host: binary.shop, trafficPolicy: {proxyProtocol: {version: V2}}}
---
kind: DestinationRule
metadata: {name: posted, namespace: shop}
spec: {host: posted.shop, trafficPolicy: {tunnel: {protocol: POST, targetHost: far.example.com, targetPort: 443}}}`

// liveHosts are the services and their ports of endpoints, in the order of VIPs
// from 10.96.0.1 on.
var liveHosts = []struct {
	host federation.Hostname
	port uint16
}{
	{"web.shop", 8080},
	{"flaky.shop", 8081},
	{"narrow.shop", 8083},
	{"sticky.shop", 8080},
	{"simple.shop", 8443},
	{"named.shop", 8443},
	{"wrong.shop", 8443},
	{"stranger.shop", 8443},
	{"mutual.shop", 8444},
	{"mesh.shop", 8080},
	{"spread.shop", 8080},
	{"ordered.shop", 8081},
	{"coded.shop", 8081},
	{"announced.shop", 8082},
	{"tunnelled.shop", 8082},
	{"binary.shop", 8082},
	{"posted.shop", 8082},
}

func liveURL(host federation.Hostname) string {
	for i, h := range liveHosts {
		if h.host == host {
			return fmt.Sprintf("http://10.96.0.%d/", i+1)
		}
	}
	return ""
}

// liveFiles writes what the rules refer to where a proxy can read it.
func liveFiles(t *testing.T, authority *testbed.Authority) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cert, key := authority.Issue(testbed.Subject{Name: "caller", Hosts: []string{"spiffe://example.com/caller"}})
	for name, content := range map[string][]byte{"ca.pem": authority.PEM, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// liveFixture starts the servers v1 and v2, of which v2 fails at port 8081, and a
// caller with a sidecar. At port 8083 they answer once they are released.
func liveFixture(t *testing.T, release <-chan struct{}) *testbed.Namespace {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "live")
	server := authority.TLS(testbed.Subject{Name: "server", Hosts: []string{"server.example.com", "simple.shop"}})
	demanding := server.Clone()
	demanding.ClientAuth = tls.RequireAndVerifyClientCert
	for name, address := range map[string]string{"v1": "10.7.0.2", "v2": "10.7.0.3"} {
		ns, _ := pod(t, network, address, nil)
		plain := []int{8080, 8081}
		if name == "v2" {
			plain = plain[:1]
			fails(t, ns, "0.0.0.0:8081")
		}
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: ns, HTTP: plain})
		opens(t, ns, "0.0.0.0:8082")
		holds(t, ns, "0.0.0.0:8083", release)
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: ns, HTTP: []int{8443}, TLS: server})
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: ns, HTTP: []int{8444}, TLS: demanding})
	}
	w := newFixture().attach("c1", "")
	for i, h := range liveHosts {
		shard := web(at("10.7.0.2", h.port), at("10.7.0.3", h.port))
		shard.Endpoints[0].Labels, shard.Endpoints[1].Labels = map[string]string{"version": "v1"}, map[string]string{"version": "v2"}
		shard.Endpoints[0].Locality, shard.Endpoints[1].Locality = federation.Locality{Region: "eu"}, federation.Locality{Region: "us"}
		if h.host == "tunnelled.shop" || h.host == "posted.shop" {
			shard.Ports[0].Protocol = federation.TCP
		}
		shard.VIPs = vips(fmt.Sprintf("10.96.0.%d/32", i+1))
		w.say("c1", key(h.host), shard)
	}
	w.config(t, strings.ReplaceAll(liveRules, "$DIR", liveFiles(t, authority)))
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	return caller
}

func fails(t *testing.T, ns *testbed.Namespace, address string) {
	t.Helper()
	serves(t, ns, address, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
}

// holds starts a server that answers no request before it is released.
func holds(t *testing.T, ns *testbed.Namespace, address string, release <-chan struct{}) {
	t.Helper()
	serves(t, ns, address, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
}

func serves(t *testing.T, ns *testbed.Namespace, address string, answer http.HandlerFunc) {
	t.Helper()
	listener, err := ns.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
}

// What DestinationRules say happens to requests through a real Envoy (K21, K22).
func TestRulesDoWhatTheySay(t *testing.T) {
	release := make(chan struct{})
	caller := liveFixture(t, release)
	t.Run("subsets select", func(t *testing.T) {
		for i := range 20 {
			want := []string{"v1", "v2"}[i%2]
			if got := caller.Get(liveURL("web.shop"), "version", want).Echo(t).Name; got != want {
				t.Fatalf("a request for %s is answered by %s", want, got)
			}
		}
	})
	t.Run("what fails is ejected", func(t *testing.T) { ejects(t, caller) })
	t.Run("connections are limited", func(t *testing.T) { limits(t, caller, release) })
	t.Run("K21 requests are distributed over localities", func(t *testing.T) { spreads(t, caller) })
	t.Run("K21 what comes first fails over", func(t *testing.T) {
		statuses := untilServed(t, caller, liveURL("ordered.shop"))
		failed := slices.Index(statuses, 200)
		if failed < 3 || slices.ContainsFunc(statuses[failed:], func(s int) bool { return s != 200 }) {
			t.Errorf("requests to an endpoint that fails are answered with %v; want 500 three times, and 200 from some request on", statuses)
		}
	})
	t.Run("only the listed codes eject", func(t *testing.T) {
		failed := 0
		for range 20 {
			if caller.Get(liveURL("coded.shop")).Status == http.StatusInternalServerError {
				failed++
			}
		}
		if failed != 10 {
			t.Errorf("%d of 20 requests over two endpoints are answered by the one that fails, want 10", failed)
		}
	})
	t.Run("connections open as the rules say", func(t *testing.T) { announces(t, caller) })
	t.Run("hashing is sticky", func(t *testing.T) { sticks(t, caller) })
	for host, want := range map[federation.Hostname]int{
		"simple.shop": 200, "named.shop": 200, "wrong.shop": 503, "stranger.shop": 503, "mutual.shop": 200, "mesh.shop": 503,
	} {
		t.Run("TLS of "+string(host), func(t *testing.T) {
			r := caller.Get(liveURL(host), "Host", string(host))
			if r.Err != nil || r.Status != want {
				t.Fatalf("status %d %v, want %d: %s", r.Status, r.Err, want, r.Body)
			}
			if host == "simple.shop" && r.Echo(t).ServerName != "simple.shop" || host == "named.shop" &&
				r.Echo(t).ServerName != "server.example.com" {
				t.Errorf("the SNI is %q", r.Echo(t).ServerName)
			}
			if host == "mutual.shop" && !slices.Equal(r.Echo(t).Peer, []string{"spiffe://example.com/caller"}) {
				t.Errorf("the server sees %q", r.Echo(t).Peer)
			}
		})
	}
	t.Run("the host of a request is checked", func(t *testing.T) {
		if r := caller.Get(liveURL("simple.shop"), "Host", "10.96.0.5"); r.Status != 503 {
			t.Errorf("a server without a certificate for the host answers with %d", r.Status)
		}
	})
}

// untilServed are the answers to requests, the last 20 of which are those of a server that is
// well. Failures eject an endpoint; Envoy does that beside the requests, some of which come
// before it.
func untilServed(t *testing.T, caller *testbed.Namespace, url string) (statuses []int) {
	t.Helper()
	const enough = 20
	testbed.WaitFor(t, time.Minute, "requests to be served", func() error {
		for range enough {
			statuses = append(statuses, caller.Get(url).Status)
		}
		if last := statuses[len(statuses)-enough:]; slices.ContainsFunc(last, func(s int) bool { return s != http.StatusOK }) {
			return fmt.Errorf("they are answered with %v", last)
		}
		return nil
	})
	return statuses
}

func ejects(t *testing.T, caller *testbed.Namespace) {
	statuses := untilServed(t, caller, liveURL("flaky.shop"))
	if failed := slices.DeleteFunc(statuses, func(s int) bool { return s == http.StatusOK }); len(failed) < 2 {
		t.Errorf("%d requests failed; want two failures or a few more, then none", len(failed))
	}
}

// spreads: each locality has its share (K21).
func spreads(t *testing.T, caller *testbed.Namespace) {
	answers := map[string]int{}
	for range 200 {
		answers[caller.Get(liveURL("spread.shop")).Echo(t).Name]++
	}
	// Six standard deviations of a share of 80 %; without distribution it would be 100.
	if v1 := answers["v1"]; v1 < 126 || v1 > 194 {
		t.Errorf("200 requests are answered by %v", answers)
	}
}

func limits(t *testing.T, caller *testbed.Namespace, release chan<- struct{}) {
	const many, refused = 8, 3 // at least: one is served, one waits for its connection, and Envoy may be late to count
	answers := make(chan int)
	for range many {
		go func() { answers <- caller.Get(liveURL("narrow.shop")).Status }()
	}
	for range refused {
		if got := <-answers; got != 503 {
			t.Errorf("with one connection, for which one may wait, one more request is answered with %d", got)
		}
	}
	close(release)
	statuses := map[int]int{}
	for range many - refused {
		statuses[<-answers]++
	}
	if statuses[200] < 1 || statuses[200]+statuses[503] != many-refused {
		t.Errorf("with one connection, the last requests are answered with %v", statuses)
	}
}

func sticks(t *testing.T, caller *testbed.Namespace) {
	servers := map[string]bool{}
	for i := range 20 {
		user := fmt.Sprintf("user-%d", i)
		first := caller.Get(liveURL("sticky.shop"), "x-user", user).Echo(t).Name
		servers[first] = true
		for range 3 {
			if got := caller.Get(liveURL("sticky.shop"), "x-user", user).Echo(t).Name; got != first {
				t.Fatalf("%s is sent to %s and to %s", user, first, got)
			}
		}
	}
	if len(servers) != 2 {
		t.Errorf("all users are sent to %v", servers)
	}
}
