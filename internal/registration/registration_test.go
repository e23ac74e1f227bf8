package registration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/registration"
)

// TestU07ProxyIsAWorkloadOfItsGroup: from when it connects until a grace period after it
// left; what it is comes from the group and from what it proved.
func TestU07ProxyIsAWorkloadOfItsGroup(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		p := vm("10.0.0.1")
		p.Network, p.Locality = "site-1", federation.Locality{Region: "us", Zone: "b"}
		joined := w.join(p)
		all := w.endpoints()
		if len(all) != 1 {
			t.Fatalf("there are %d endpoints", len(all))
		}
		e := all[0]
		got := fmt.Sprint(e.Address, " ", e.Ports, " ", e.Network, " ", e.Locality, " ", e.ServiceAccount, " ", e.Health,
			" ", e.TLSMode, " ", e.Labels["app"])
		if want := "10.0.0.1 [{http 9090}] site-1 us/b shop/ledger HEALTHY istio ledger"; got != want {
			t.Errorf("the endpoint is %s, want %s", got, want)
		}
		pass(10 * registration.DefaultGrace)
		if n := len(w.endpoints()); n != 1 {
			t.Fatalf("while it is connected there are %d endpoints", n)
		}
		if n := w.written.Load(); n != 1 {
			t.Errorf("it was written %d times", n)
		}
		joined.Leave()
		joined.Leave() // a second time does nothing
		pass(registration.DefaultGrace / 2)
		again := w.join(p)
		pass(2 * registration.DefaultGrace)
		if n := len(w.endpoints()); n != 1 {
			t.Fatalf("after it came back there are %d endpoints", n)
		}
		again.Leave()
		pass(registration.DefaultGrace + time.Second)
		if n := len(w.endpoints()); n != 0 {
			t.Errorf("after the grace period there are %d endpoints", n)
		}
	})
}

// TestG86MetricsOfMachinesAreAboutTheirGroup: the workloads of a group are one in metrics, unless the group names another. A name that
// is too long for a label is excluded.
func TestG86MetricsOfMachinesAreAboutTheirGroup(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		long := strings.Repeat("long-", 20) + "name"
		for group, labels := range map[string]string{
			"plain": "app: ledger", "named": "app: ledger, service.istio.io/workload-name: books", long: "app: ledger",
		} {
			w.apply("apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: {name: " + group + ", namespace: shop}\n" +
				"spec: {metadata: {labels: {" + labels + "}}, template: {serviceAccount: ledger}}\n")
		}
		for address, c := range map[string]struct{ group, want string }{
			"10.0.0.1": {"plain", "plain"}, "10.0.0.2": {"named", "books"}, "10.0.0.3": {long, ""},
		} {
			p := vm(address)
			p.Group = c.group
			joined := w.join(p)
			all := w.endpoints()
			if len(all) != 1 || all[0].Labels[federation.WorkloadNameLabel] != c.want {
				t.Errorf("the workload of %s is %+v, want the name %q", c.group, all, c.want)
			}
			joined.Leave()
			pass(2 * registration.DefaultGrace)
		}
	})
}

// TestU07HealthDecides: a workload with a probe gets requests while its agent says that it is
// healthy. However often that changes, little is written.
func TestU07HealthDecides(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		p := vm("10.0.0.1")
		p.Probed = true
		joined := w.join(p)
		want := func(when string, health federation.Health) {
			t.Helper()
			pass(3 * time.Second)
			if all := w.endpoints(); len(all) != 1 || all[0].Health != health {
				t.Fatalf("%s: %+v", when, all)
			}
		}
		want("before the first report", federation.Unhealthy)
		joined.Report("")
		want("healthy", federation.Healthy)
		joined.Report("connection refused\x00\xff" + strings.Repeat("x", 1<<20))
		want("unhealthy", federation.Unhealthy)
		before := w.written.Load()
		for i := range 100_000 {
			joined.Report(fmt.Sprint(i))
		}
		joined.Report("")
		want("after a flood", federation.Healthy)
		if n := w.written.Load() - before; n > 2 {
			t.Errorf("a flood of reports was written %d times", n)
		}
		joined.Leave()
		w.join(p)
		want("before the first report of the next stream", federation.Healthy)
	})
}

// TestU34ReportsOfRegisteredWorkloadsCount, so that the annotation of the group, which is for Istio, is
// not reported.
func TestU34ReportsOfRegisteredWorkloadsCount(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.join(vm("10.0.0.1"))
		pass(3 * time.Second)
		if n := len(w.endpoints()); n != 1 {
			t.Fatalf("there are %d endpoints", n)
		}
		for p := range w.snapshots.Latest().Problems("hub") {
			t.Errorf("the hub reports %+v", p)
		}
	})
}

// TestU07ClaimsAreRefused: with a reason, and without an effect on what is registered.
func TestU07ClaimsAreRefused(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.join(vm("10.0.0.1"))
		for name, c := range map[string]struct {
			claim func(*registration.Proxy)
			want  registration.Reason
			says  string
		}{
			"no such group": {func(p *registration.Proxy) { p.Group = "other" }, registration.NoGroup, "WorkloadGroup shop/other"},
			"a group of another namespace": {
				func(p *registration.Proxy) { p.Namespace = "bank" }, registration.NoGroup,
				"WorkloadGroup bank/ledger",
			},
			"a path as a group": {func(p *registration.Proxy) { p.Group = "../shop/ledger" }, registration.NoGroup, ""},
			"another account":   {func(p *registration.Proxy) { p.Account = "web" }, registration.OtherIdentity, `is proven to be "web"`},
			"another trust domain": {
				func(p *registration.Proxy) { p.TrustDomain = "evil.example" },
				registration.OtherIdentity, `"evil.example"`,
			},
			"the address of another proxy": {
				func(p *registration.Proxy) {
					p.Addresses, p.Node = vm("10.0.0.1").Addresses, "sidecar~10.0.0.1~x.shop~d"
				},
				registration.Taken, "10.0.0.1",
			},
		} {
			p := vm("10.0.0.2")
			c.claim(&p)
			_, err := w.keeper.Join(p)
			var refusal *registration.Refusal
			if !errors.As(err, &refusal) || refusal.Reason != c.want || !strings.Contains(refusal.Message, c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, address := range []string{"10.0.0.2", "10.0.0.3"} {
			w.join(vm(address))
		}
		var refusal *registration.Refusal
		if _, err := w.keeper.Join(vm("10.0.0.4")); !errors.As(err, &refusal) || refusal.Reason != registration.TooMany {
			t.Errorf("one more than may be: %v", err)
		}
		if n := len(w.endpoints()); n != 3 {
			t.Errorf("there are %d endpoints", n)
		}
	})
}

// TestU07NamesAreBounded: a proxy that comes again and again under other addresses has no
// more entries than its account may have.
func TestU07NamesAreBounded(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		refused := 0
		for i := range 1000 {
			joined, err := w.keeper.Join(vm(fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
			if err != nil {
				refused++
				continue
			}
			joined.Leave()
		}
		if n := len(w.endpoints()); n > 3 || refused != 997 {
			t.Errorf("there are %d endpoints, and %d were refused", n, refused)
		}
		pass(2 * registration.DefaultGrace)
		if n := len(w.endpoints()); n != 0 {
			t.Errorf("after the grace period there are %d", n)
		}
		w.join(vm("10.0.0.1"))
		if n := len(w.endpoints()); n != 1 {
			t.Errorf("then there are %d", n)
		}
	})
}

// TestU07WhatEndsARegistration: an entry that is not valid or was applied, and a group that
// is deleted; the proxy learns the reason.
func TestU07WhatEndsARegistration(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		ends := func(joined *registration.Membership, want registration.Reason) {
			t.Helper()
			<-joined.Ended()
			var refusal *registration.Refusal
			if !errors.As(joined.Err(), &refusal) || refusal.Reason != want {
				t.Errorf("it ends with %v, want %s", joined.Err(), want)
			}
		}
		p := vm("10.0.0.1")
		p.Network = "No Network"
		ends(w.join(p), registration.Invalid)
		w.apply("apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: ledger-10.0.0.2, namespace: shop}\nspec: {address: 192.0.2.1}\n")
		ends(w.join(vm("10.0.0.2")), registration.Taken)
		joined := w.join(vm("10.0.0.3"))
		if n := len(w.endpoints()); n != 1 {
			t.Fatalf("there are %d endpoints", n)
		}
		w.apply(strings.Replace(mesh, "serviceAccount: ledger", "serviceAccount: other", 1))
		ends(joined, registration.OtherIdentity)
		if n := len(w.endpoints()); n != 0 {
			t.Errorf("after the group is for others there are %d endpoints", n)
		}
	})
}

// TestU07HubsShareTheStore: a proxy that reconnects to another hub keeps its entry, a hub that
// is killed leaves none behind, and an address that a proxy has at one hub is refused at another.
func TestU07HubsShareTheStore(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		other := w.another()
		joined := w.join(vm("10.0.0.1"))
		synctest.Wait()
		stranger := vm("10.0.0.1")
		stranger.Node = "sidecar~10.0.0.1~other.shop~d"
		refused := other.join(stranger)
		<-refused.Ended()
		refused.Leave()
		joined.Leave()
		pass(registration.DefaultGrace / 3)
		there := other.join(vm("10.0.0.1"))
		pass(3 * registration.DefaultGrace)
		if n := len(w.endpoints()); n != 1 {
			t.Fatalf("after it moved there are %d endpoints", n)
		}
		other.stop()
		pass(registration.DefaultGrace + time.Second)
		if n := len(w.endpoints()); n != 0 {
			t.Errorf("after its hub was killed there are %d endpoints", n)
		}
		there.Leave()
		w.join(stranger)
		if n := len(w.endpoints()); n != 1 {
			t.Errorf("another proxy with the address: %d endpoints", n)
		}
	})
}

// TestU07StoreIsAway: registered proxies stay connected, and are written when it is back.
func TestU07StoreIsAway(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.store.Fail(errors.New("no quorum"))
		joined := w.join(vm("10.0.0.1"))
		pass(time.Minute)
		select {
		case <-joined.Ended():
			t.Fatalf("it ends with %v", joined.Err())
		default:
		}
		w.store.Fail(nil)
		pass(2 * registration.DefaultGrace)
		if n := len(w.endpoints()); n != 1 {
			t.Errorf("there are %d endpoints", n)
		}
	})
}

// pass lets time pass in the bubble of a test.
func pass(d time.Duration) { <-time.NewTimer(d).C }
