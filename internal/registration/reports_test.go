package registration_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/registration"
)

// entries are two applied WorkloadEntries of the service; the annotation is of the first.
func entries(annotation string) string {
	return `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: reports, namespace: shop, annotations: {` + annotation + `}}
spec: {address: 10.0.0.1, labels: {app: ledger}, serviceAccount: ledger}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: plain, namespace: shop}
spec: {address: 10.0.0.2, labels: {app: ledger}, serviceAccount: ledger}
`
}

const reported = `proxy.istio.io/health-checks-enabled: "true"`

// reporter is the proxy of the WorkloadEntry "reports".
func reporter() registration.Proxy {
	p := vm("10.0.0.1")
	p.Group, p.Entry = "", "reports"
	return p
}

// is fails unless the workload of the first WorkloadEntry has that health, and the other is healthy.
func (h *hub) is(when string, want federation.Health) {
	h.t.Helper()
	found := map[string]federation.Health{}
	for _, e := range h.endpoints() {
		found[e.Address.String()] = e.Health
	}
	if found["10.0.0.1"] != want || found["10.0.0.2"] != federation.Healthy {
		h.t.Fatalf("%s: the health of the workloads is %v, want %s of 10.0.0.1", when, found, want)
	}
}

// TestK78AgentsDecideAboutAppliedEntries: a WorkloadEntry with the annotation gets requests while its agent is connected
// and says that it is healthy, and until a grace period after it left.
func TestK78AgentsDecideAboutAppliedEntries(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(entries(reported))
		w.is("without an agent", federation.Unhealthy)
		joined := w.join(reporter())
		pass(3 * time.Second)
		w.is("before the first report", federation.Unhealthy)
		for p := range w.snapshots.Latest().Problems("hub") {
			if want := "it gets no requests: its agent has not reported its health yet, for which it needs a readinessProbe"; !strings.HasSuffix(p.Message, want) {
				t.Errorf("before the first report the problem is %q", p.Message)
			}
		}
		joined.Report("")
		pass(3 * time.Second)
		w.is("reported healthy", federation.Healthy)
		joined.Report("connection refused")
		pass(3 * time.Second)
		w.is("reported unhealthy", federation.Unhealthy)
		joined.Report("")
		pass(10 * registration.DefaultGrace)
		w.is("reported healthy again", federation.Healthy)
		joined.Leave()
		pass(registration.DefaultGrace / 2)
		w.is("within the grace period", federation.Healthy)
		again := w.join(reporter())
		pass(2 * registration.DefaultGrace)
		w.is("back, and nothing reported since", federation.Healthy)
		again.Leave()
		pass(registration.DefaultGrace + time.Second)
		w.is("after the grace period", federation.Unhealthy)
	})
}

// TestK78AnnotationDecidesWhetherReportsCount: also when it is added or removed while the agent is connected.
func TestK78AnnotationDecidesWhetherReportsCount(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(entries(""))
		joined := w.join(reporter())
		joined.Report("connection refused")
		pass(registration.DefaultGrace)
		w.is("without the annotation", federation.Healthy)
		if n := w.reports.Load(); n != 0 {
			t.Errorf("reports without effect are written %d times", n)
		}
		w.apply(entries(reported))
		pass(registration.DefaultGrace)
		w.is("with the annotation", federation.Unhealthy)
		joined.Report("")
		pass(3 * time.Second)
		w.is("reported healthy", federation.Healthy)
		w.apply(entries(`proxy.istio.io/health-checks-enabled: "false"`))
		joined.Report("connection refused")
		pass(registration.DefaultGrace)
		w.is("with the annotation false", federation.Healthy)
		w.apply(entries(reported + ", isthmus.dev/unhealthy: disk full"))
		joined.Report("")
		pass(registration.DefaultGrace)
		w.is("kept from requests by an operator", federation.Unhealthy)
		w.apply(entries(reported))
		pass(registration.DefaultGrace)
		w.is("reported healthy before", federation.Healthy)
		if told := w.log.String(); strings.Count(told, "\n") != 1 || !strings.Contains(told, "a proxy reports the health of a WorkloadEntry") {
			t.Errorf("the log is %s", told)
		}
	})
}

// TestK78ReportsOfOthersAreRefused: who is not proven to be the workload's account, says that it is at another address, or
// connects from the address of another WorkloadEntry.
func TestK78ReportsOfOthersAreRefused(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(entries(reported))
		owner := w.join(reporter())
		owner.Report("")
		pass(3 * time.Second)
		for name, c := range map[string]struct {
			claim func(*registration.Proxy)
			want  registration.Reason
			says  string
		}{
			"no such entry":              {func(p *registration.Proxy) { p.Entry = "other" }, registration.NoEntry, "WorkloadEntry shop/other"},
			"an entry of another space":  {func(p *registration.Proxy) { p.Namespace = "bank" }, registration.NoEntry, "bank/reports"},
			"a path as an entry":         {func(p *registration.Proxy) { p.Entry = "../shop/reports" }, registration.NoEntry, ""},
			"another account":            {func(p *registration.Proxy) { p.Account = "web" }, registration.OtherIdentity, "shop/web"},
			"another trust domain":       {func(p *registration.Proxy) { p.TrustDomain = "evil.example" }, registration.OtherIdentity, "evil.example"},
			"another address":            {func(p *registration.Proxy) { p.Addresses = at("10.0.0.3") }, registration.OtherAddress, "has the address 10.0.0.1, and the proxy says that it is at 10.0.0.3"},
			"connected as another entry": {func(p *registration.Proxy) { p.Source = netip.MustParseAddr("10.0.0.2") }, registration.OtherAddress, "another WorkloadEntry of shop/ledger"},
			"a second proxy":             {func(p *registration.Proxy) { p.Node = "sidecar~10.0.0.1~x.shop~d" }, registration.Taken, "another proxy"},
		} {
			p := reporter()
			c.claim(&p)
			_, err := w.keeper.Join(p)
			var refusal *registration.Refusal
			if !errors.As(err, &refusal) || refusal.Reason != c.want || !strings.Contains(refusal.Message, c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.is("after all that", federation.Healthy)
		gateway := reporter()
		gateway.Source = netip.MustParseAddr("192.0.2.1")
		gateway.Addresses = append(at("10.9.9.9"), at("10.0.0.1")...)
		if _, err := w.keeper.Join(gateway); err != nil {
			t.Errorf("with further addresses, and through a gateway: %v", err)
		}
	})
}

// TestK79GatewaysMayHaveEntries: an agent connects through a gateway that has WorkloadEntries, if none of them has the account
// of the agent's own: what runs there cannot prove that account. Without an account, it is the namespace's default.
func TestK79GatewaysMayHaveEntries(t *testing.T) {
	gateway := func(name, namespace, account string) string {
		return fmt.Sprintf("---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: %s, namespace: %s}\n"+
			"spec: {address: 10.0.0.254, serviceAccount: %q}\n", name, namespace, account)
	}
	for name, c := range map[string]struct {
		gateways, account string
		joins             bool
	}{
		"an account of its own":                 {gateway("gw", "shop", "gateway"), "ledger", true},
		"the account in another namespace":      {gateway("gw", "infra", "ledger"), "ledger", true},
		"no account":                            {gateway("gw", "shop", ""), "ledger", true},
		"the account of the agent":              {gateway("gw", "shop", "ledger"), "ledger", false},
		"one entry of the account, and one not": {gateway("a", "shop", "gateway") + gateway("b", "shop", "ledger"), "ledger", false},
		"no account, nor has the agent's":       {gateway("gw", "shop", ""), "default", false},
		"no account in another namespace":       {gateway("gw", "infra", ""), "default", true},
	} {
		t.Run(name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.apply(strings.Replace(entries(reported), "serviceAccount: ledger", "serviceAccount: "+c.account, 1) + c.gateways)
				p := reporter()
				p.Account, p.Source = c.account, netip.MustParseAddr("10.0.0.254")
				joined, err := w.keeper.Join(p)
				if !c.joins {
					var refusal *registration.Refusal
					if !errors.As(err, &refusal) || refusal.Reason != registration.OtherAddress {
						t.Errorf("it joins with %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				joined.Report("")
				pass(3 * time.Second)
				w.is("reported through the gateway", federation.Healthy)
			})
		})
	}
}

// TestK78NetworksMayOverlap: an agent connects from an address that a WorkloadEntry has in another network.
func TestK78NetworksMayOverlap(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(entries(reported) + `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: elsewhere, namespace: shop}
spec: {address: 10.0.0.7, network: site-2}
`)
		p := reporter()
		p.Source = netip.MustParseAddr("10.0.0.7")
		if _, err := w.keeper.Join(p); err != nil {
			t.Error(err)
		}
	})
}

// TestK78ReportersOutliveTheirEntry: the stream of a proxy whose WorkloadEntry is deleted goes on, and its reports count
// when the WorkloadEntry is back. A proxy that connects meanwhile is refused.
func TestK78ReportersOutliveTheirEntry(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		for _, annotation := range []string{reported, ""} {
			w.apply(entries(annotation))
			joined := w.join(reporter())
			joined.Report("")
			pass(3 * time.Second)
			w.is("reported healthy", federation.Healthy)
			w.delete("reports")
			pass(registration.DefaultGrace)
			select {
			case <-joined.Ended():
				t.Fatalf("with %q, it ends with %v", annotation, joined.Err())
			default:
			}
			var refusal *registration.Refusal
			_, err := w.keeper.Join(reporter())
			if !errors.As(err, &refusal) || refusal.Reason != registration.NoEntry || !strings.HasPrefix(refusal.Message, "reporting health: ") {
				t.Errorf("without the WorkloadEntry: %v", err)
			}
			w.apply(entries(annotation))
			pass(registration.DefaultGrace)
			w.is("applied again", federation.Healthy)
			joined.Leave()
			pass(2 * registration.DefaultGrace)
		}
	})
}

// TestK78StrangersHoldNoEntry: a proxy that names a WorkloadEntry whose reports do not count is served, and has nothing
// to say about it when they do.
func TestK78StrangersHoldNoEntry(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(entries(""))
		stranger := reporter()
		stranger.Account = "web"
		if joined, err := w.keeper.Join(stranger); joined != nil || err != nil {
			t.Fatalf("a stranger joins as %v, %v", joined, err)
		}
		w.apply(entries(reported))
		owner := w.join(reporter())
		owner.Report("")
		pass(3 * time.Second)
		w.is("of its owner", federation.Healthy)
		if _, err := w.keeper.Join(stranger); err == nil {
			t.Error("a stranger with the node ID of the owner joins")
		}
	})
}

// TestK78WhatEndsReports: the WorkloadEntry is another proxy's now; what was reported ends at once.
func TestK78WhatEndsReports(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		for change, want := range map[[2]string]registration.Reason{
			{"serviceAccount: ledger", "serviceAccount: other"}: registration.OtherIdentity,
			{"address: 10.0.0.1", "address: 10.0.0.9"}:          registration.OtherAddress,
		} {
			w.apply(entries(reported))
			joined := w.join(reporter())
			joined.Report("")
			pass(3 * time.Second)
			w.is("reported", federation.Healthy)
			w.apply(strings.Replace(entries(reported), change[0], change[1], 1))
			for _, e := range w.endpoints() {
				if e.Health == federation.Healthy && e.Address.String() != "10.0.0.2" {
					t.Errorf("%v: the report counts for %v", change, e)
				}
			}
			<-joined.Ended()
			var refusal *registration.Refusal
			if !errors.As(joined.Err(), &refusal) || refusal.Reason != want {
				t.Errorf("it ends with %v, want %s", joined.Err(), want)
			}
			joined.Leave()
			w.apply(entries(reported))
			w.is("as before, without an agent", federation.Unhealthy)
		}
	})
}

// TestK78FloodOfReportsIsWrittenRarely, and what an agent says is stored short and readable.
func TestK78FloodOfReportsIsWrittenRarely(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(entries(reported))
		joined := w.join(reporter())
		joined.Report("")
		pass(3 * time.Second)
		before := w.reports.Load()
		for i := range 100_000 {
			joined.Report(fmt.Sprint(i))
		}
		joined.Report("connection refused\x00\xff" + strings.Repeat("x", 1<<20))
		pass(3 * time.Second)
		if n := w.reports.Load() - before; n > 2 {
			t.Errorf("a flood of reports is written %d times", n)
		}
		problems := 0
		for p := range w.snapshots.Latest().Problems("hub") {
			problems++
			if p.Code != "WORKLOAD_UNHEALTHY" || p.Object != "WorkloadEntry shop/reports" ||
				!strings.Contains(p.Message, "connection refused ") || len(p.Message) > 500 {
				t.Errorf("the hub reports %+v", p)
			}
		}
		if problems != 1 {
			t.Errorf("there are %d problems", problems)
		}
		after := w.reports.Load()
		pass(time.Hour)
		if n := w.reports.Load() - after; n != 0 {
			t.Errorf("what did not change is written %d times", n)
		}
	})
}

// TestM16HubsShareReports: what an agent reports at one hub is in force at all, stays when the agent moves to another
// hub, and ends when that is killed.
func TestM16HubsShareReports(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(entries(reported))
		other := w.another()
		here := w.join(reporter())
		here.Report("")
		pass(3 * time.Second)
		w.is("at its hub", federation.Healthy)
		other.is("at the other hub", federation.Healthy)
		stranger := reporter()
		stranger.Node = "sidecar~10.0.0.1~other.shop~d"
		refused := other.join(stranger)
		<-refused.Ended()
		refused.Leave()
		here.Leave()
		pass(registration.DefaultGrace / 3)
		there := other.join(reporter())
		pass(3 * registration.DefaultGrace)
		w.is("after it moved", federation.Healthy)
		there.Report("connection refused")
		pass(3 * time.Second)
		w.is("reported at the other hub", federation.Unhealthy)
		there.Report("")
		pass(3 * time.Second)
		w.is("reported at the other hub", federation.Healthy)
		other.stop()
		pass(registration.DefaultGrace + time.Second)
		w.is("after its hub was killed", federation.Unhealthy)
		synctest.Wait()
	})
}
