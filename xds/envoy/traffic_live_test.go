package envoy_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// get is the answer to a request that must be served.
func (tr *traffic) get(t *testing.T, url string, headers ...string) (testbed.EchoAnswer, http.Header) {
	t.Helper()
	r := tr.caller.Get(url, headers...)
	if r.Err != nil || r.Status != http.StatusOK {
		t.Fatalf("%s is answered with %d %v: %s", url, r.Status, r.Err, r.Body)
	}
	return r.Echo(t), r.Header
}

// What policies say happens to requests through one real sidecar.
func TestK74RequestsThroughARealProxyFollowPolicies(t *testing.T) {
	tr := startTraffic(t)
	for _, row := range []struct {
		name  string
		check func(*testing.T, *traffic)
	}{
		{"delegates route what is delegated to them", delegates},
		{"each mirror has a copy", mirrors},
		{"retries have a budget", keepsBudget},
		{"connections of HTTP/2 whose peer is mute are closed", pings},
		{"a cookie leads to one endpoint", cookieLeads},
		{"the address of the caller leads to one endpoint", sourceLeads},
		{"a query parameter leads to one endpoint", func(t *testing.T, tr *traffic) { parameterLeads(t, tr, "query") }},
		{"a table leads to one endpoint", func(t *testing.T, tr *traffic) { parameterLeads(t, tr, "maglev") }},
		{"a ring leads to one endpoint", func(t *testing.T, tr *traffic) { parameterLeads(t, tr, "ring") }},
		{"clusters have shares, and fail over", splitFailsOver},
		{"new endpoints warm up", warmsUp},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t, tr) })
	}
}

func delegates(t *testing.T, tr *traffic) {
	url := trafficURL("delegating")
	if got, _ := tr.get(t, url+"team/b/x"); got.Name != "b" || got.Path != "/of-b/x" {
		t.Errorf("/team/b/x reaches %s of %s", got.Path, got.Name)
	}
	if got, _ := tr.get(t, url+"team/x"); got.Name != "a" {
		t.Errorf("/team/x is answered by %s", got.Name)
	}
	for _, path := range []string{"", "elsewhere"} { // the delegate has no say about the second
		if got := tr.caller.Get(url + path).Status; got != http.StatusTeapot {
			t.Errorf("/%s, which is not delegated, is answered with %d", path, got)
		}
	}
}

// mirrors asks until each of two servers has a copy, as a copy that fails is not repeated.
func mirrors(t *testing.T, tr *traffic) {
	testbed.WaitFor(t, time.Minute, "copies of requests", func() error {
		if got, _ := tr.get(t, trafficURL("mirrored")); got.Name != "a" {
			t.Fatalf("a mirrored request is answered by %s", got.Name)
		}
		if tr.copies[0].Load() == 0 || tr.copies[1].Load() == 0 {
			return fmt.Errorf("mirrors have %d and %d copies", tr.copies[0].Load(), tr.copies[1].Load())
		}
		return nil
	})
	if got := tr.copies[2].Load(); got > 0 {
		t.Errorf("a mirror with 0 %% has %d copies", got)
	}
}

// keepsBudget sends requests whose retries the server holds: one retry may run at a time.
func keepsBudget(t *testing.T, tr *traffic) {
	const many = 3
	answers := make(chan int, many)
	for i := range many {
		go func() { answers <- tr.caller.Get(fmt.Sprint(trafficURL("budget"), i)).Status }()
	}
	for range many - 1 {
		if got := <-answers; got != http.StatusServiceUnavailable {
			t.Errorf("a request that must not be tried again is answered with %d", got)
		}
	}
	close(tr.release)
	if got := <-answers; got != http.StatusOK {
		t.Errorf("a request that was tried again is answered with %d", got)
	}
}

func pings(t *testing.T, tr *traffic) {
	if got := tr.caller.Get(trafficURL("mute")); got.Status != http.StatusServiceUnavailable {
		t.Errorf("a request to a mute server is answered with %d %v", got.Status, got.Err)
	}
	if tr.pings.Load() == 0 {
		t.Error("the server had no ping")
	}
}

// cookieLeads: a caller without a cookie gets one for its next requests.
func cookieLeads(t *testing.T, tr *traffic) {
	servers := map[string]bool{}
	for range 20 {
		first, header := tr.get(t, trafficURL("cookie"))
		cookie, err := http.ParseSetCookie(header.Get("Set-Cookie"))
		if err != nil || cookie.Name != "place" || cookie.MaxAge != 90 || cookie.Path != "/shop" || cookie.SameSite != http.SameSiteStrictMode {
			t.Fatalf("the cookie is %q, %v", header.Get("Set-Cookie"), err)
		}
		servers[first.Name] = true
		for range 2 {
			again, header := tr.get(t, trafficURL("cookie"), "Cookie", "place="+cookie.Value)
			if again.Name != first.Name || header.Get("Set-Cookie") != "" {
				t.Fatalf("with the cookie of %s, %s answers, with the cookie %q", first.Name, again.Name, header.Get("Set-Cookie"))
			}
		}
	}
	if len(servers) != 2 {
		t.Errorf("all callers are sent to %v", servers)
	}
}

func sourceLeads(t *testing.T, tr *traffic) {
	servers := map[string]bool{}
	for range 10 {
		got, _ := tr.get(t, trafficURL("source"))
		servers[got.Name] = true
	}
	if len(servers) != 1 {
		t.Errorf("requests from one address are answered by %v", servers)
	}
}

func parameterLeads(t *testing.T, tr *traffic, service string) {
	servers := map[string]bool{}
	for user := range 20 {
		url := fmt.Sprintf("%s?other=%%d&user=%d", trafficURL(service), user)
		first, _ := tr.get(t, fmt.Sprintf(url, 1))
		again, _ := tr.get(t, fmt.Sprintf(url, 2))
		if first.Name != again.Name {
			t.Fatalf("user %d is sent to %s and to %s", user, first.Name, again.Name)
		}
		servers[first.Name] = true
	}
	if len(servers) != 2 {
		t.Errorf("all users are sent to %v", servers)
	}
}

// splitFailsOver: each cluster has its share, and that of one that fails goes to the other.
func splitFailsOver(t *testing.T, tr *traffic) {
	answered := map[string]int{}
	for range 200 {
		got, _ := tr.get(t, trafficURL("split"))
		answered[got.Name]++
	}
	// Six standard deviations of a share of 30 %; without shares, it would be 50 % or none.
	if b := answered["b"]; b < 21 || b > 99 {
		t.Errorf("200 requests are answered by %v", answered)
	}
	tr.fail.Store(true)
	statuses := untilServed(t, tr.caller, trafficURL("split"))
	if failed := slices.DeleteFunc(statuses, func(s int) bool { return s == http.StatusOK }); len(failed) < 2 {
		t.Errorf("%d requests failed; want two failures or a few more, then none", len(failed))
	}
	if got, _ := tr.get(t, trafficURL("split")); got.Name != "a" {
		t.Errorf("requests are answered by %s, which fails", got.Name)
	}
}

// warmsUp replaces the endpoint b again and again, until it gets fewer requests than its half
// while it is new: a machine that stops for the time of warming up sees nothing of it.
func warmsUp(t *testing.T, tr *traffic) {
	both := endpointsOf(t, tr.fixture.snapshot, warmCluster)
	tr.fixture.apply(federation.Edit{
		Source:   federation.ShardKey{Cluster: "c2", Provider: federation.Mock},
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Gone: []federation.ServiceKey{key("warm.shop")}},
	})
	alone := endpointsOf(t, tr.fixture.snapshot, warmCluster)
	members := func(want uint64) {
		testbed.WaitFor(t, time.Minute, "endpoints", func() error {
			if got := tr.proxy.Stat("cluster." + warmCluster + ".membership_total"); got != want {
				return fmt.Errorf("the proxy has %d, want %d", got, want)
			}
			return nil
		})
	}
	testbed.WaitFor(t, time.Minute, "a new endpoint to get few requests", func() error {
		tr.proxy.WriteFile(endpointFile, alone)
		members(1)
		tr.proxy.WriteFile(endpointFile, both)
		members(2)
		answered := map[string]int{}
		for range 40 {
			got, _ := tr.get(t, trafficURL("warm"))
			answered[got.Name]++
		}
		if answered["b"] == 0 || answered["b"] > 12 { // in turn, it would be 20
			return fmt.Errorf("40 requests are answered by %v", answered)
		}
		return nil
	})
}
