package etcd_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// TestM16ReportsAreInOneStore: what a proxy reports at one hub, others over the same etcd see, replaced and deleted, too,
// and it ends with its lease. It is in no history.
func TestM16ReportsAreInOneStore(t *testing.T) {
	t.Parallel()
	m := cluster(t, 1)[0]
	var hubs [2]*etcd.Config
	for i := range hubs {
		hubs[i] = reach(t, m.endpoint()).Config(etcd.ConfigOptions{
			Kinds: []federation.Kind{federation.WorkloadHealthKind}, Patience: configtest.Patience,
		})
	}
	recorder, stop := configtest.Listen(t, hubs[1])
	t.Cleanup(stop)
	of := federation.WorkloadKey{Namespace: "shop", Name: "vm-1"}
	key := config.WorkloadHealthKey(of)
	report := func(unhealthy string, ttl time.Duration) {
		t.Helper()
		said := federation.WorkloadHealth{
			Node: "sidecar~10.0.0.1~vm-1.shop~x", Account: "shop/ledger", Address: netip.MustParseAddr("10.0.0.1"), Unhealthy: unhealthy,
		}
		o, err := config.NewWorkloadHealth(of, said)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hubs[0].Register(t.Context(), *o, ttl); err != nil {
			t.Fatal(err)
		}
		recorder.Wait(t, "the report "+unhealthy, func(s configtest.Seen) bool {
			got := s.Objects[key]
			return got != nil && !got.Expires.IsZero() && string(got.Manifest) == string(o.Manifest)
		})
	}
	gone := func(why string) {
		t.Helper()
		recorder.Wait(t, why, func(s configtest.Seen) bool { return s.Objects[key] == nil })
		if _, err := hubs[1].Renew(t.Context(), key); !errors.Is(err, config.ErrNoLease) {
			t.Errorf("%s: renewing it gives %v", why, err)
		}
	}
	report("", time.Hour)
	report("connection refused", time.Hour)
	if err := hubs[1].Release(t.Context(), key); err != nil { // the proxy moved there, and is refused
		t.Error(err)
	}
	gone("its deletion")
	report("", time.Second)
	gone("the end of its lease")
	if records, err := hubs[1].Records(t.Context(), 0, 10); err != nil || len(records) > 0 {
		t.Errorf("history has %v, %v", records, err)
	}
}
