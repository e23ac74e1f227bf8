package registration_test

import (
	"fmt"
	"testing"
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
// another account is registered, and its health changes, as if the others were not there.
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
	})
}
