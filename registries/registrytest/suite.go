// Package registrytest is the conformance suite that every kind of registry
// passes, against the real server. A kind's test makes a Rig and calls Suite;
// its TestMain looks for goroutines left behind.
package registrytest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Sink is what a registry speaks to; every kind's own Sink has these methods.
type Sink interface {
	Update(federation.Edit)
	Status(federation.RegistryStatus)
}

// Rig is a real server, a link to it that can be cut, and the means to change
// what the server holds. Its methods fail the test where they cannot do what
// they say; Apply and Delete go past the link and work while it is cut.
type Rig interface {
	// Run runs a new registry through the link, as the kind's own Run does.
	Run(ctx context.Context, to Sink) error
	// Apply makes the service be there with exactly these endpoints, all healthy.
	Apply(t testing.TB, s Service)
	// Delete removes the service and its endpoints.
	Delete(t testing.TB, name string)
	// Key says under which key the registry offers the service.
	Key(name string) federation.ServiceKey
	// Cut breaks the link: what is open breaks, what is new fails.
	Cut(t testing.TB)
	// Mend restores the link.
	Mend(t testing.TB)
}

// Service is what the suite asks a rig to register: one TCP port of the same
// number for service and endpoints.
type Service struct {
	Name      string // a DNS label
	Port      uint16
	Endpoints []netip.Addr
}

// Suite runs every conformance test. Each starts a new registry on the same
// server and uses services of its own.
func Suite(t *testing.T, rig Rig) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Rig)
	}{
		{"FullFirst", fullFirst},
		{"Update", update},
		{"Delete", remove},
		{"NoDifferenceNoEdit", noDifference},
		{"Reconnect", reconnect},
		{"DeleteWhileDisconnected", deleteWhileDisconnected},
		{"StartDisconnected", startDisconnected},
		{"EndsWithItsContext", ends},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, rig) })
	}
}

// Start runs a registry of the rig and returns what records it and what ends it;
// the end of the test ends it, too, and shows what was found wrong.
func Start(t *testing.T, rig Rig) (*Recorder, func()) {
	t.Helper()
	heard := &Recorder{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rig.Run(ctx, heard) }()
	ended := false
	stop := func() {
		if ended {
			return
		}
		ended = true
		cancel()
		limit := time.NewTimer(Patience)
		defer limit.Stop()
		select {
		case err := <-done:
			heard.close()
			if err != nil {
				t.Errorf("Run ended with its context and said %v, want nil", err)
			}
		case <-limit.C:
			t.Errorf("Run still runs %v after its context ended", Patience)
		}
	}
	t.Cleanup(func() { stop(); heard.Check(t) })
	return heard, stop
}

// Offers reports whether the view has the service with exactly these endpoints. A
// registry may not know a service without any.
func Offers(v View, key federation.ServiceKey, s Service) bool {
	shard := v.Services[key]
	if shard == nil {
		return len(s.Endpoints) == 0
	}
	var have []netip.Addr
	for _, e := range shard.Endpoints {
		if ip, ok := e.Address.IP(); ok && e.Health == federation.Healthy {
			have = append(have, ip)
		}
	}
	want := slices.SortedFunc(slices.Values(s.Endpoints), netip.Addr.Compare)
	slices.SortFunc(have, netip.Addr.Compare)
	return slices.Equal(want, have) && slices.ContainsFunc(shard.Ports, func(p federation.Port) bool { return p.Number == s.Port })
}

func service(name string, hosts ...byte) Service {
	s := Service{Name: name, Port: 8080}
	for _, host := range hosts {
		s.Endpoints = append(s.Endpoints, netip.AddrFrom4([4]byte{10, 20, 30, host}))
	}
	return s
}

func waitFor(t *testing.T, rig Rig, heard *Recorder, s Service) View {
	t.Helper()
	return heard.Wait(t, fmt.Sprintf("service %s with %v", s.Name, s.Endpoints), func(v View) bool { return Offers(v, rig.Key(s.Name), s) })
}

// waitReady waits until the registry follows the server and offers the services.
func waitReady(t *testing.T, rig Rig, heard *Recorder, services ...Service) {
	t.Helper()
	heard.WaitPhase(t, federation.Ready)
	for _, s := range services {
		waitFor(t, rig, heard, s)
	}
}

// apply registers the services for the length of the test.
func apply(t *testing.T, rig Rig, services ...Service) {
	t.Helper()
	for _, s := range services {
		rig.Apply(t, s)
		t.Cleanup(func() { rig.Delete(t, s.Name) })
	}
}
