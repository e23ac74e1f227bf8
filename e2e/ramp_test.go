package e2e

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// twoPlaces is a service with a server in eu and one in us, behind a gateway.
const twoPlaces = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints:
  - {address: 10.79.0.21, locality: eu, ports: {http: 8080}}
  - {address: 10.79.0.22, locality: us, ports: {http: 8080}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 8081, name: http, protocol: HTTP}, hosts: [web.example.com]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web.example.com], gateways: [front], http: [{route: [{destination: {host: web.example.com}}]}]}
`

const rampOfUS = `apiVersion: isthmus.dev/v1
kind: Drain
metadata: {name: us}
spec: {locality: us, rampFrom: %d, percent: %d, ramp: %s, rampStart: %q}
`

// share is how many of 100 requests the server in us answers.
func (w *tenants) share() (int, error) {
	us := 0
	for range 100 {
		r := w.namespace.Get("http://"+tenantsIngress+":8081/", "Host", "web.example.com")
		if r.Err != nil || r.Status != http.StatusOK {
			return 0, fmt.Errorf("status %d: %w", r.Status, r.Err)
		}
		if r.Echo(w.t).Name == "us" {
			us++
		}
	}
	return us, nil
}

// awaitShare waits until the share is between the two. One that grows never falls meanwhile.
func (w *tenants) awaitShare(least, most int, grows bool) {
	w.t.Helper()
	const tolerance = 3 // each of the proxy's threads has turns of its own
	before := 0
	w.await(fmt.Sprintf("the server in us to answer %d to %d of 100 requests", least, most), func() error {
		us, err := w.share()
		if err != nil {
			return err
		}
		if grows && us < before-tolerance {
			w.t.Errorf("the server in us answers %d of 100 requests after %d", us, before)
		}
		before = us
		if us < least || us > most {
			return fmt.Errorf("it answers %d", us)
		}
		return nil
	})
}

// TestG140SharesOfRequestsFollowARamp: at a real Envoy, the server that a Drain covers gets the share of requests that the ramp
// says at the time, and more with each step of the hub's clock while nobody changes the Drain.
func TestG140SharesOfRequestsFollowARamp(t *testing.T) {
	t.Parallel()
	w := newTenants(t)
	for name, address := range map[string]string{"eu": "10.79.0.21", "us": "10.79.0.22"} {
		w.namespace.AddLocal(address)
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: w.namespace, Address: netip.MustParseAddr(address), HTTP: []int{8080}})
	}
	w.apply(strings.Split(twoPlaces, "---\n")...)
	w.awaitShare(48, 52, false)
	ramp := func(from, to int, length string, start time.Duration) {
		t.Helper()
		w.apply(fmt.Sprintf(rampOfUS, from, to, length, time.Now().Add(start).UTC().Format(time.RFC3339)))
	}
	ramp(0, 100, "20h", -5*time.Hour-30*time.Minute) // 6 of 20 steps: of 170 parts of the weight it has 70
	w.awaitShare(39, 43, false)
	ramp(0, 100, "20h", -15*time.Hour-30*time.Minute) // 16 of 20 steps: of 120 parts of the weight it has 20
	w.awaitShare(15, 19, false)
	ramp(100, 0, "1m", time.Hour)
	w.awaitShare(0, 0, false)
	ramp(100, 0, "1m", 0)
	w.awaitShare(15, 100, true)
}
