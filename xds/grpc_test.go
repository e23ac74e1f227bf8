package xds

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

// configure sets an object of the namespace shop; the spec is YAML.
func (p *proxyless) configure(kind, name, spec string) {
	p.t.Helper()
	o := &federation.Object{Key: federation.ObjectKey{Group: "networking.istio.io", Kind: kind, Namespace: "shop", Name: name}, Digest: spec}
	into := map[string]proto.Message{"VirtualService": &networking.VirtualService{}, "DestinationRule": &networking.DestinationRule{}}[kind]
	text, err := yaml.YAMLToJSON([]byte(spec))
	if err == nil {
		err = protojson.Unmarshal(text, into)
	}
	if err != nil {
		p.t.Fatalf("%s %s: %v", kind, name, err)
	}
	switch spec := into.(type) {
	case *networking.VirtualService:
		o.Names = spec.GetHosts()
	case *networking.DestinationRule:
		o.Names = []string{spec.GetHost()}
	}
	o.Spec = into
	p.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
}

func TestGRPCClientReachesAllEndpointsAndFollowsThem(t *testing.T) {
	p, all := newProxyless(t), newBackends(t, 3)
	p.set(backedBy("web", all[:2]))
	for _, target := range []string{"web.shop.svc.cluster.local:80", "web:80", "web.shop:80", "web.shop.svc:80"} {
		awaitAnswers(t, p.dial(target), all[0], all[1])
	}
	conn := p.dial("web:80")
	awaitAnswers(t, conn, all[0], all[1])
	p.set(backedBy("web", all[1:]))
	awaitAnswers(t, conn, all[1], all[2])
	drained := backedBy("web", all[1:])
	drained.Set[key("web")].Endpoints[0].Health = federation.Draining
	p.set(drained)
	awaitAnswers(t, conn, all[2])
	drained = backedBy("web", all[1:2])
	drained.Set[key("web")].Endpoints[0].Health = federation.Draining
	p.set(drained) // it is better than nothing
	awaitAnswers(t, conn, all[1])
}

// A gRPC client gets what it names and nothing else.
func TestGRPCClientIsSentOnlyWhatItNames(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1), service("other", 2))
	n := node("web-1")
	n.UserAgentName = "gRPC Go"
	c := h.client(xdstest.Options{Node: n})
	for _, q := range []xdstest.Request{
		{Type: xdstest.LDS, Names: []string{"web:80"}},
		{Type: xdstest.RDS, Names: []string{"web.shop.svc.cluster.local:80"}},
		{Type: xdstest.CDS, Names: []string{cluster("web")}},
		{Type: xdstest.EDS, Names: []string{cluster("web")}},
	} {
		if got := c.get(q).Names(); len(got) != 1 || got[0] != q.Names[0] {
			t.Errorf("%s: asked for %q, got %q", q.Type, q.Names, got)
		}
	}
	h.set(service("third", 3))
	h.set(service("web", 4))
	if got := c.accept(xdstest.EDS).Names(); len(got) != 1 || got[0] != cluster("web") {
		t.Errorf("after another service came: %q", got)
	}
}

// Weights are kept whatever gRPC thinks of those of endpoints.
func TestGRPCClientKeepsWeights(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{
		"round robin": "{}", "least request": "{loadBalancer: {simple: LEAST_REQUEST}}",
		"ring": "{loadBalancer: {consistentHash: {httpHeaderName: x-none, ringHash: {minimumRingSize: 4096}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			p, all := newProxyless(t), newBackends(t, 3)
			p.configure("DestinationRule", "web", "{host: web.shop.svc.cluster.local, trafficPolicy: "+policy+"}")
			p.set(backedBy("web", all, 7, 2, 1))
			conn := p.dial("web:80")
			awaitAll(t, conn, all...)
			got, err := answers(conn, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []int{700, 200, 100} {
				if n := got[all[i].address]; n < want/2 || n > want*3/2 {
					t.Errorf("of 1000 calls %v; want about %d at %s", got, want, all[i].address)
				}
			}
		})
	}
}

// awaitAll calls until each of them has answered.
func awaitAll(t *testing.T, conn *grpc.ClientConn, want ...*backend) {
	t.Helper()
	testbed.WaitFor(t, patience, "every backend answers", func() error {
		got, err := answers(conn, 50)
		if err != nil {
			return err
		}
		for _, b := range want {
			if got[b.address] == 0 {
				return fmt.Errorf("answered by %v, not by %s", got, b.address)
			}
		}
		return nil
	})
}

const subsets = `
host: web.shop.svc.cluster.local
subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}, {name: v3, labels: {version: v3}}]
`

func TestGRPCClientIsRoutedByVirtualService(t *testing.T) {
	p, all := newProxyless(t), newBackends(t, 3)
	p.set(backedBy("web", all))
	p.configure("DestinationRule", "web", subsets)
	p.configure("VirtualService", "web", `
hosts: [web.shop.svc.cluster.local]
http:
- match: [{headers: {x-user: {exact: ada}}}]
  route: [{destination: {host: web, subset: v2}}]
- match: [{uri: {prefix: /shop.Old/}}]
  fault: {abort: {grpcStatus: ABORTED, percentage: {value: 100}}}
  route: [{destination: {host: web, subset: v1}}]
- match: [{uri: {exact: /shop.Web/Gone}}]
  route: [{destination: {host: nowhere}}]
- match: [{uri: {prefix: /shop.None/}, queryParams: {a: {exact: b}}}]
  route: [{destination: {host: web, subset: v2}}]
- match: [{uri: {prefix: /shop.Plain/}, withoutHeaders: {x-a: {exact: "1"}}}]
  route: [{destination: {host: web, subset: v3}}]
- route: [{destination: {host: web, subset: v1}}]
`)
	conn := p.dial("web:80")
	for _, c := range []struct {
		method  string
		headers []string
		want    int // backend
		code    codes.Code
	}{
		{"/shop.Web/Get", nil, 0, codes.OK},
		{"/shop.Web/Get", []string{"x-user", "ada"}, 1, codes.OK},
		{"/shop.Web/Get", []string{"x-user", "adam"}, 0, codes.OK},
		{"/shop.Old/Get", nil, 0, codes.Aborted},
		{"/shop.Web/Gone", nil, 0, codes.Unavailable},
		{"/shop.None/Get", nil, 0, codes.OK},
		{"/shop.Plain/Get", nil, 2, codes.OK},
		{"/shop.Plain/Get", []string{"x-a", "2"}, 2, codes.OK},
		{"/shop.Plain/Get", []string{"x-a", "1"}, 0, codes.OK},
	} {
		from, err := call(conn, c.method, c.headers...)
		if status.Code(err) != c.code || err == nil && from != all[c.want].address {
			t.Errorf("%s %q: answered by %s, %v; want backend %d, %s", c.method, c.headers, from, err, c.want, c.code)
		}
	}
}

func TestGRPCClientSplitsByWeight(t *testing.T) {
	t.Parallel()
	p, all := newProxyless(t), newBackends(t, 2)
	p.set(backedBy("web", all))
	p.configure("DestinationRule", "web", subsets)
	p.configure("VirtualService", "web", `
hosts: [web.shop.svc.cluster.local]
http:
- retries: {attempts: 0} # a call without a backend would wait for each
  route:
  - {destination: {host: web, subset: v1}, weight: 60}
  - {destination: {host: web, subset: v2}, weight: 20}
  - {destination: {host: nowhere}, weight: 20}
`)
	conn, counts := p.dial("web:80"), [3]int{}
	for range 1000 {
		from, err := call(conn, "/shop.Web/Get")
		switch {
		case err != nil && status.Code(err) != codes.Unavailable:
			t.Fatal(err)
		case err != nil:
			counts[2]++
		case from == all[0].address:
			counts[0]++
		default:
			counts[1]++
		}
	}
	for i, want := range []int{600, 200, 200} {
		if counts[i] < want*7/10 || counts[i] > want*13/10 {
			t.Errorf("of 1000 calls %v; want about 600, 200 and 200 that fail", counts)
		}
	}
}

func TestGRPCClientRetriesAndGivesUp(t *testing.T) {
	p, all := newProxyless(t), newBackends(t, 1)
	p.set(backedBy("web", all))
	p.configure("VirtualService", "web", `
hosts: [web.shop.svc.cluster.local]
http:
- match: [{headers: {x-once: {exact: "1"}}}]
  retries: {attempts: 0}
  route: [{destination: {host: web}}]
- match: [{headers: {x-slow: {exact: "1"}}}]
  timeout: 0.2s
  route: [{destination: {host: web}}]
- retries: {attempts: 2, retryOn: resource-exhausted, backoff: 0.001s}
  route: [{destination: {host: web}}]
`)
	conn := p.dial("web:80")
	for _, c := range []struct {
		failures, calls int
		code            codes.Code
		headers         []string
	}{
		{2, 3, codes.OK, nil}, {9, 3, codes.ResourceExhausted, nil}, {1, 1, codes.ResourceExhausted, []string{"x-once", "1"}},
	} {
		all[0].fail(c.failures)
		_, err := call(conn, "/shop.Web/Get", c.headers...)
		if status.Code(err) != c.code || all[0].called() != c.calls {
			t.Errorf("%d failures, headers %q: %d calls, %v; want %d, %s", c.failures, c.headers, all[0].called(), err, c.calls, c.code)
		}
	}
	started := time.Now()
	if _, err := call(conn, "/shop.Slow/Get", "x-slow", "1"); status.Code(err) != codes.DeadlineExceeded || time.Since(started) > patience/2 {
		t.Errorf("a call with a time limit of 0.2s ends after %s with %v", time.Since(started), err)
	}
}

// A rule that demands TLS is never met in plain text, and the caller does not
// wait to learn it.
func TestGRPCClientIsNotSentToPlaintextWhereTLSIsDemanded(t *testing.T) {
	p, all := newProxyless(t), newBackends(t, 1)
	p.set(backedBy("web", all))
	p.configure("DestinationRule", "web", "{host: web.shop.svc.cluster.local, trafficPolicy: {tls: {mode: SIMPLE}}}")
	if _, err := call(p.dial("web:80"), "/shop.Web/Get"); status.Code(err) != codes.Unavailable || all[0].called() != 0 {
		t.Errorf("the call ends with %v, the backend was called %d times", err, all[0].called())
	}
}

// A host of which only a VirtualService speaks can be dialled, and so can a
// service that comes back.
func TestGRPCClientFollowsConfigurationAndServices(t *testing.T) {
	t.Parallel()
	p, all := newProxyless(t), newBackends(t, 2)
	p.set(backedBy("web", all[:1]), backedBy("next", all[1:]))
	p.configure("VirtualService", "front", "{hosts: [front.example], http: [{route: [{destination: {host: web, port: {number: 80}}}]}]}")
	conn, other := p.dial("front.example:80"), p.dial("next:80")
	awaitAnswers(t, conn, all[0])
	awaitAnswers(t, other, all[1])
	p.configure("VirtualService", "front", "{hosts: [front.example], http: [{route: [{destination: {host: next, port: {number: 80}}}]}]}")
	awaitAnswers(t, conn, all[1])
	p.set(gone("next"))
	testbed.WaitFor(t, patience, "calls to the service that went fail", func() error {
		if _, err := call(other, "/shop.Web/Get"); status.Code(err) != codes.Unavailable {
			return fmt.Errorf("the call ends with %w", err)
		}
		return nil
	})
	p.set(backedBy("next", all[1:]))
	testbed.WaitFor(t, patience, "the service is back", func() error {
		_, err := call(other, "/shop.Web/Get")
		return err
	})
}

// A service that is found by DNS is one name, which the client resolves.
func TestGRPCClientResolvesOneName(t *testing.T) {
	p, all := newProxyless(t), newBackends(t, 1)
	named := backedBy("web", all)
	shard := named.Set[key("web")]
	shard.Resolution = federation.DNSLB
	if err := shard.Endpoints[0].Address.UnmarshalText([]byte("localhost")); err != nil {
		t.Fatal(err)
	}
	p.set(named)
	awaitAnswers(t, p.dial("web:80"), all[0])
}

// The bootstrap of the guide with certificates: the hub demands the client's.
func TestGRPCClientComesByMutualTLS(t *testing.T) {
	authority, dir := testbed.NewAuthority(t, "mesh"), t.TempDir()
	cert, private := authority.Issue(testbed.Subject{Name: "client"})
	for name, content := range map[string][]byte{"cert.pem": cert, "key.pem": private, "ca.pem": authority.PEM} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := authority.TLS(testbed.Subject{Name: "hub", Hosts: []string{"127.0.0.1"}})
	config.ClientAuth, config.MinVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS12
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, all := serveProxyless(t, l, l.Addr().String(), grpc.Creds(credentials.NewTLS(config))), newBackends(t, 1)
	p.creds = strings.ReplaceAll(`{"type": "tls", "config": {"certificate_file": "DIR/cert.pem", "private_key_file": "DIR/key.pem", "ca_certificate_file": "DIR/ca.pem"}}`, "DIR", dir)
	p.set(backedBy("web", all))
	awaitAnswers(t, p.dial("web:80"), all[0])
	(&hub{t: t, fleet: p.fleet}).eventually("every client is synced and says what it is", func(v *fleet.Value) bool {
		for proxy := range v.Proxies() {
			if proxy.Sync[xdstest.EDS].State != fleet.Synced || !strings.HasPrefix(proxy.UserAgent, "gRPC") {
				return false
			}
		}
		return true
	})
}
