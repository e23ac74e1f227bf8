package e2e

import (
	"net/http"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// blocked reports whether a request reached nobody: its connection was closed, or a
// proxy refused it.
func blocked(r testbed.Response) bool { return r.Err != nil || r.Status == http.StatusBadGateway }

func answeredBy(t *testing.T, name string) func(testbed.Response) bool {
	return func(r testbed.Response) bool {
		return r.Err == nil && r.Status == http.StatusOK && r.Echo(t).Name == name
	}
}

func testEgress(t *testing.T, w *tasks) {
	www := func() testbed.Response { return w.caller.Get("http://"+externalAddress+"/", "Host", "www.example.com") }
	other := func() testbed.Response {
		return w.caller.Get("http://"+externalAddress+"/", "Host", "other.example.com")
	}
	w.task(t, "reviews-v1")
	eventually(t, "ALLOW_ANY to let it through", www, answeredBy(t, "external"))
	w.task(t, "egress-blocked")
	eventually(t, "REGISTRY_ONLY to block it", www, blocked)
	w.task(t, "egress-opened")
	eventually(t, "the ServiceEntry to open it", www, answeredBy(t, "external"))
	if r := other(); !blocked(r) {
		t.Errorf("another host at the same address: status %d", r.Status)
	}
	w.task(t, "reviews-v1")
	eventually(t, "ALLOW_ANY again", other, answeredBy(t, "external"))
	w.task(t, "egress-scope")
	eventually(t, "the Sidecar to block it", www, blocked)
	if r := w.httpbin("/scope"); r.Status != http.StatusOK {
		t.Errorf("a service of the namespace: status %d, %v", r.Status, r.Err)
	}
}

// testTLSOrigination asks for plain HTTP; the proxy speaks TLS to the site.
func testTLSOrigination(t *testing.T, w *tasks) {
	w.task(t, "egress-tls")
	w.hub.supported(t, objectRef{Kind: "DestinationRule", Name: "secure"})
	ask := func() testbed.Response {
		return w.caller.Get("http://"+externalAddress+"/", "Host", "secure.example.com")
	}
	eventually(t, "the site to answer over TLS", ask, answeredBy(t, "secure"))
	if got := ask().Echo(t); got.ServerName != "secure.example.com" {
		t.Errorf("the site was asked for %q", got.ServerName)
	}
}

func testGateway(t *testing.T, w *tasks) {
	w.keep(t, "helloworld")
	w.hub.supported(t, objectRef{Kind: "Gateway", Name: "helloworld"})
	ask := func(path, host string) testbed.Response {
		return w.outside.Get("http://"+ingressAddress+path, "Host", host)
	}
	eventually(t, "the gateway to serve", func() testbed.Response { return ask("/hello", "hello.example.com") },
		answeredBy(t, "helloworld-v1"))
	for _, strange := range [][2]string{{"/hello", "other.example.com"}, {"/other", "hello.example.com"}} {
		if r := ask(strange[0], strange[1]); r.Status != http.StatusNotFound {
			t.Errorf("%v: status %d, %v; want 404", strange, r.Status, r.Err)
		}
	}
}

// testGatewayTLS ends TLS at the gateway, with a certificate from a file of the
// hub that comes by SDS.
func testGatewayTLS(t *testing.T, w *tasks) {
	w.keep(t, "helloworld-tls")
	w.hub.supported(t, objectRef{Kind: "Gateway", Name: "helloworld"})
	ask := func(name string) testbed.Response { return getTLS(t, w.outside, ingressAddress, name, w.ca) }
	eventually(t, "the gateway to serve TLS", func() testbed.Response { return ask("hello.example.com") }, answeredBy(t, "helloworld-v1"))
	if r := ask("other.example.com"); r.Err == nil {
		t.Errorf("a name that no server has gets status %d", r.Status)
	}
	if r := w.outside.Get("http://"+ingressAddress+"/hello", "Host", "hello.example.com"); r.Status != http.StatusOK {
		t.Errorf("plain HTTP beside it: status %d, %v", r.Status, r.Err)
	}
}
