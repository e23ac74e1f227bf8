package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/internal/probe"
	"isthmus.dev/isthmus/internal/probe/healthstore"
)

// healthIn is that of a hub in the store at the URL.
func healthIn(t *testing.T, hub, url string) healthstore.Store {
	t.Helper()
	store, err := etcd.Open(t.Context(), etcd.Options{
		DataDir: filepath.Join(shortDir(t), "etcd"), Endpoints: []string{url},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- store.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	})
	return healthstore.Store{Hub: hub, Leases: store.Config(etcd.ConfigOptions{
		Kinds:    []federation.Kind{federation.GatewayHealthKind},
		Patience: patience, Logger: slog.New(slog.DiscardHandler),
	})}
}

const twoGateways = `apiVersion: isthmus.dev/v1
kind: Network
metadata: {name: n2}
spec: {gateways: [{address: 192.0.2.1}, {address: 192.0.2.2}]}
`

// gatewayStates waits until the hub shows that of n2's gateways.
func (h *hubUnderTest) gatewayStates(t *testing.T, want string) {
	t.Helper()
	h.await(t, "the verdicts "+want, func() error {
		var a struct {
			Network *struct {
				Gateways []struct {
					Health []struct {
						Observer string
						State    string
					}
				}
			}
		}
		if err := h.query(`{ network(networkID: "n2") { gateways { health { observer state } } } }`, &a); err != nil || a.Network == nil {
			return fmt.Errorf("%v, %w", a.Network, err)
		}
		if got := fmt.Sprint(a.Network.Gateways); got != want {
			return fmt.Errorf("they are %s", got)
		}
		return nil
	})
}

// TestHubsOfOneStoreShareVerdicts: what the gateways of one hub found is in force at
// every hub, until one knows better or its lease ends.
func TestHubsOfOneStoreShareVerdicts(t *testing.T) {
	t.Parallel()
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	key := filepath.Join(shortDir(t), "seal.key") // hubs of one store have one
	hubs := []*hubUnderTest{
		startHub(t, "--etcd-endpoints", store.URL, "--seal-key", key),
		startHub(t, "--etcd-endpoints", store.URL, "--seal-key", key),
	}
	var made struct {
		Apply struct{ UserErrors []struct{ Message string } }
	}
	if err := hubs[0].query(fmt.Sprintf(`mutation { apply(input: {manifests: [%q]}) { userErrors { message } } }`, twoGateways),
		&made); err != nil || len(made.Apply.UserErrors) > 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	all := func(want string) {
		t.Helper()
		for _, h := range hubs {
			h.gatewayStates(t, want)
		}
	}
	all("[{[]} {[]}]")
	one, two := healthIn(t, "one", store.URL), healthIn(t, "two", store.URL)
	health := func(reachable bool, gateways ...string) probe.Health {
		s := probe.Health{HealthKey: probe.HealthKey{Observer: "n1", Reachable: reachable}, Since: map[netip.AddrPort]time.Time{}}
		for _, g := range gateways {
			s.Since[netip.MustParseAddrPort(g+":15443")] = time.Unix(1_800_000_000, 0)
		}
		return s
	}
	put := func(to healthstore.Store, s probe.Health, ttl time.Duration) {
		t.Helper()
		if err := to.Put(t.Context(), s, ttl); err != nil {
			t.Fatal(err)
		}
	}
	put(one, health(false, "192.0.2.1"), time.Hour)
	all("[{[{n1 UNREACHABLE}]} {[]}]")
	for _, h := range hubs {
		h.awaitMetrics(t, `isthmus_gateway_reachable{gateway="192.0.2.1:15443",network="n2",observer="n1"} 0`,
			`isthmus_network_cut_off{network="n2",observer="n1"} 0`)
	}
	put(two, health(true, "192.0.2.1", "192.0.2.2"), time.Hour) // who reaches it knows better
	all("[{[{n1 REACHABLE}]} {[{n1 REACHABLE}]}]")
	if err := two.Remove(t.Context(), health(true).HealthKey); err != nil {
		t.Fatal(err)
	}
	all("[{[{n1 UNREACHABLE}]} {[]}]")
	if err := two.Renew(t.Context(), health(true).HealthKey); !errors.Is(err, probe.ErrNoHealth) {
		t.Errorf("renewing what was removed: %v", err)
	}
	if err := one.Renew(t.Context(), health(false).HealthKey); err != nil {
		t.Error(err)
	}
	put(one, health(false, "192.0.2.1", "192.0.2.2"), time.Hour)
	all("[{[{n1 LAST_RESORT}]} {[{n1 LAST_RESORT}]}]")
	hubs[1].awaitMetrics(t, `isthmus_network_cut_off{network="n2",observer="n1"} 1`)
	put(two, health(true, "192.0.2.2"), time.Hour)
	all("[{[{n1 UNREACHABLE}]} {[{n1 REACHABLE}]}]")
	put(two, health(true, "192.0.2.2"), 2*time.Second) // and then its hub is gone
	all("[{[{n1 LAST_RESORT}]} {[{n1 LAST_RESORT}]}]")
}
