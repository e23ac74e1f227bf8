package envoy_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// routedFixture has two services, first and second, and routes between them.
func routedFixture(t *testing.T) *federation.Snapshot {
	first, second := web(at("10.7.0.2", 8080)), web(at("10.7.0.3", 8080))
	first.VIPs, second.VIPs = vips("10.96.0.1/32"), vips("10.96.0.2/32")
	return newFixture().attach("c1", "").say("c1", webKey, first).say("c1", key("second.shop.svc.cluster.local"),
		second).config(t, `kind: MeshSettings
spec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}
---
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - {match: [{headers: {end-user: {exact: jason}}}], route: [{destination: {host: second}}]}
  - {match: [{uri: {prefix: /old/}}], rewrite: {uri: /new/, authority: other.example}, route: [{destination: {host: second}}]}
  - {match: [{uri: {prefix: /moved}}], redirect: {uri: /there, redirectCode: 307}}
  - {match: [{uri: {exact: /teapot}}], directResponse: {status: 418, body: {string: short and stout}}}
  - {match: [{uri: {prefix: /abort}}], fault: {abort: {httpStatus: 555, percentage: {value: 100}}}, route: [{destination: {host: web}}]}
  - {match: [{uri: {prefix: /late}}], fault: {delay: {fixedDelay: 0.5s, percentage: {value: 100}}}, route: [{destination: {host: web}}]}
  - {match: [{uri: {prefix: /slow}}], timeout: 0.3s, retries: {attempts: 0}, route: [{destination: {host: web}}]}
  - {match: [{uri: {prefix: /gone}}], route: [{destination: {host: nowhere}}]}
  - {match: [{uri: {prefix: /split}}], route: [{destination: {host: web}, weight: 50}, {destination: {host: second}, weight: 50}]}
  - {headers: {request: {set: {x-set: "1"}}}, route: [{destination: {host: web}}]}`).snapshot
}

// What VirtualServices say happens to the requests of a captured workload.
func TestVirtualServicesThroughARealEnvoy(t *testing.T) {
	fixture, network := routedFixture(t), testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	for address, name := range map[string]string{"10.7.0.2": "first", "10.7.0.3": "second"} {
		ns, _ := pod(t, network, address, nil)
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: ns, HTTP: []int{8080}})
	}
	caller, _ := pod(t, network, "10.7.0.9", fixture)
	for path, want := range map[string]int{"/moved": 307, "/teapot": 418, "/abort": 555, "/gone": 503, "/slow?delay=1m": 504, "/": 200} {
		if got := ask(t, caller, "http://10.96.0.1"+path, ""); got.status != want {
			t.Errorf("%s is answered with %d, want %d", path, got.status, want)
		}
	}
	if got := ask(t, caller, "http://10.96.0.1/", "jason"); got.name != "second" {
		t.Errorf("jason is answered by %q", got.name)
	}
	if got := ask(t, caller, "http://10.96.0.1/old/x", ""); got.name != "second" || got.path != "/new/x" || got.host != "other.example" {
		t.Errorf("a rewritten request is %+v", got)
	}
	if got := ask(t, caller, "http://10.96.0.1/late", ""); got.status != 200 || got.took < 400*time.Millisecond {
		t.Errorf("a delayed request is %+v", got)
	}
	answered := map[string]int{}
	for range 60 {
		answered[ask(t, caller, "http://10.96.0.1/split", "").name]++
	}
	if answered["first"] == 0 || answered["second"] == 0 {
		t.Errorf("split requests are answered by %v", answered)
	}
	if got := ask(t, caller, "http://10.7.0.2:80/", ""); got.status != http.StatusBadGateway {
		t.Errorf("a host that no service has is answered with %d under REGISTRY_ONLY, want 502", got.status)
	}
}

type answer struct {
	status           int
	name, path, host string
	took             time.Duration
}

func ask(t *testing.T, from *testbed.Namespace, url, user string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		request.Header.Set("End-User", user)
	}
	client := &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	start := time.Now()
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, took: time.Since(start)}
	var echoed testbed.EchoAnswer
	if a.status == http.StatusOK && json.NewDecoder(response.Body).Decode(&echoed) == nil {
		a.name, a.path, a.host = echoed.Name, echoed.Path, echoed.Host
	}
	return a
}
