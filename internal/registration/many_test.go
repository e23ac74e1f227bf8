package registration_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/internal/registration"
)

const otherGroup = `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: other, namespace: shop}
spec:
  metadata: {labels: {app: ledger}}
  template: {serviceAccount: other, ports: {http: 9090}}
`

// TestU33NoRecordEndsWhileManyConnect: 300 proxies connect to a hub whose store takes a second for each write, and then their
// health changes all the time. Each that is registered stays so, and none is written twice for that. A proxy of
// another account is registered, and its health changes, as if the others were not there. Those that leave while they wait are gone after
// the grace period.
func TestU33NoRecordEndsWhileManyConnect(t *testing.T) {
	const many = 300
	inFixtureOf(t, many, func(t *testing.T, w *fixture) {
		w.apply(otherGroup)
		w.slow.Store(int64(time.Second))
		all := make([]*registration.Membership, many)
		for i := range all {
			all[i] = w.join(vm(fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250)))
		}
		p := vm("10.9.0.1")
		p.Group, p.Account = "other", "other"
		other := w.join(p)
		healthy := func() (all int, own string) {
			for _, e := range w.endpoints() {
				all++
				if e.Address.String() == "10.9.0.1" {
					own = string(e.Health)
				}
			}
			return all, own
		}
		pass(4 * time.Second)
		if _, own := healthy(); own != "HEALTHY" {
			t.Errorf("after 4 s, the proxy of the other account is %q", own)
		}
		last := 0
		for last <= many {
			pass(registration.DefaultGrace)
			now, _ := healthy()
			if now <= last {
				t.Fatalf("there are %d workloads, and before there were %d", now, last)
			}
			last = now
		}
		if n := w.written.Load(); n != many+1 {
			t.Errorf("%d proxies were written %d times", many+1, n)
		}
		for i := range 60 {
			for _, m := range all {
				m.Report([]string{"connection refused", ""}[i%2])
			}
			if i == 30 {
				other.Report("it says no")
			}
			pass(time.Second)
			if now, _ := healthy(); now != many+1 {
				t.Fatalf("there are %d workloads while they change, want %d", now, many+1)
			}
			if _, own := healthy(); i == 35 && own != "UNHEALTHY" {
				t.Errorf("5 s after it reported that it is unhealthy, the proxy of the other account is %q", own)
			}
		}
		// All wait to be written again. Some leave, and some of those are back soon.
		const leaving, back = 60, 20
		for _, m := range all[:leaving] {
			m.Leave()
		}
		pass(registration.DefaultGrace / 2)
		for i := range back {
			w.join(vm(fmt.Sprintf("10.0.0.%d", 1+i)))
		}
		pass(registration.DefaultGrace/2 + 2*time.Second)
		if now, _ := healthy(); now != many+1-leaving+back {
			t.Errorf("a grace period after %d of them left there are %d workloads, want %d", leaving-back, now, many+1-leaving+back)
		}
	})
}

// TestU33ReplacedProxyKeepsNoRecord: a proxy waits to be written, and leaves; another one has its address, and leaves, too. The
// record of the address ends then, although all writes of the account hang.
func TestU33ReplacedProxyKeepsNoRecord(t *testing.T) {
	inFixtureOf(t, 10, func(t *testing.T, w *fixture) {
		first := w.join(vm("10.0.0.1"))
		if n := len(w.endpoints()); n != 1 {
			t.Fatalf("there are %d endpoints", n)
		}
		w.slow.Store(int64(time.Hour))
		for i := range 8 { // more than have places
			w.join(vm(fmt.Sprintf("10.0.0.%d", 2+i)))
		}
		synctest.Wait()
		first.Report("connection refused")
		pass(2 * registration.DefaultGrace)
		if n := len(w.endpoints()); n != 1 {
			t.Fatalf("while the first proxy waits there are %d endpoints", n)
		}
		first.Leave()
		second := vm("10.0.0.1")
		second.Node = "sidecar~10.0.0.1~second.shop~shop.svc.cluster.local"
		w.join(second).Leave()
		pass(registration.DefaultGrace + time.Second)
		if n := len(w.endpoints()); n != 0 {
			t.Errorf("a grace period after both left there are %d endpoints", n)
		}
	})
}

// TestU33NamesGetNoMorePlaces: while writes hang, a proxy reconnects at the same address under ever other names. It gets the places of its
// account and no more, nothing is left of names that have gone, and a proxy of another account is written.
func TestU33NamesGetNoMorePlaces(t *testing.T) {
	const most = 10
	inFixtureOf(t, most, func(t *testing.T, w *fixture) {
		w.apply(otherGroup)
		w.slow.Store(int64(time.Hour))
		renamed := func(name int) {
			p := vm("10.0.0.1")
			p.Node = fmt.Sprintf("sidecar~10.0.0.1~vm-%d.shop~shop.svc.cluster.local", name)
			joined := w.join(p)
			synctest.Wait()
			joined.Leave()
		}
		for i := range most {
			renamed(i)
		}
		if n := w.written.Load(); n != 4 {
			t.Errorf("%d writes of one account are on their way, want 4", n)
		}
		before := runtime.NumGoroutine()
		for i := range 10 * most {
			renamed(most + i)
		}
		if n := runtime.NumGoroutine(); n >= before+most {
			t.Errorf("%d goroutines have become %d", before, n)
		}
		p := vm("10.9.0.1")
		p.Group, p.Account = "other", "other"
		w.join(p)
		synctest.Wait()
		if n := w.written.Load(); n != 5 {
			t.Errorf("%d writes are on their way, want one of the other account, too", n)
		}
	})
}

// TestU33OneAddressIsBounded: a write that hangs counts as a member until it ends, even if another proxy has its address now.
func TestU33OneAddressIsBounded(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) { // three proxies of one account at most
		w.slow.Store(int64(time.Hour))
		join := func(name int) (*registration.Membership, error) {
			p := vm("10.0.0.1")
			p.Node = fmt.Sprintf("sidecar~10.0.0.1~vm-%d.shop~shop.svc.cluster.local", name)
			return w.keeper.Join(p)
		}
		for i := range 3 {
			joined, err := join(i)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			joined.Leave()
		}
		var refusal *registration.Refusal
		if _, err := join(3); !errors.As(err, &refusal) || refusal.Reason != registration.TooMany {
			t.Errorf("while three writes hang: %v", err)
		}
		pass(2 * time.Hour)
		w.slow.Store(0)
		if _, err := join(4); err != nil {
			t.Errorf("when they have ended: %v", err)
		}
		pass(registration.DefaultGrace)
		if n := len(w.endpoints()); n != 1 {
			t.Errorf("there are %d endpoints", n)
		}
	})
}
