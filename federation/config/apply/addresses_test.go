package apply_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
)

var entryOfFile = federation.ServiceKey{Hostname: "a.example.com", Namespace: "shop"}

// entriesOnly gives nothing but ServiceEntries, as a folder of them does.
type entriesOnly struct{ *memory.Store }

func (entriesOnly) Kinds() []federation.Kind { return []federation.Kind{federation.ServiceEntryKind} }

// addresses waits until the hub's service has automatic VIPs.
func (w *fixture) addresses(key federation.ServiceKey) []netip.Prefix {
	w.t.Helper()
	for {
		s := w.snapshots.Latest()
		if svc, ok := s.Service(key); ok && len(svc.ClusterVIPs.Of("hub")) > 0 {
			return svc.ClusterVIPs.Of("hub")
		}
		select {
		case <-s.Superseded():
		case <-w.t.Context().Done():
			w.t.Fatal("the service has no addresses")
		}
	}
}

func TestEntriesOfReadOnlySourcesHaveAutomaticVIPs(t *testing.T) {
	files := newFixture(t)
	w := newFixture(t, config.Named{Name: "FILE", Source: entriesOnly{files.store}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.engine.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	files.must(external("a.example.com"))
	if got := w.addresses(entryOfFile); len(got) != 2 {
		t.Errorf("the service has %v", got)
	}
	if r := w.must(external("b.example.com")); r.Revision != 2 {
		t.Errorf("the addresses took %d revisions", r.Revision-1)
	}
}

func TestDeletingWhatHidesAnotherBringsThatIntoForce(t *testing.T) {
	files := newFixture(t)
	files.must(external("a.example.com"))
	w := newFixture(t, config.Named{Name: "FILE", Source: entriesOnly{files.store}})
	w.must(external("a.example.com"))
	had := w.addresses(entryOfFile)
	deletion := apply.Deletion{
		DryRun:  true,
		Objects: []federation.ObjectKey{{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: "a"}},
	}
	dry, err := w.engine.Delete(t.Context(), deletion)
	if err != nil || codes(dry) != "" {
		t.Fatalf("%+v, %v", dry.Errors, err)
	}
	if svc, there := dry.After.Service(entryOfFile); !there || !slices.Equal(svc.ClusterVIPs.Of("hub"), had) {
		t.Errorf("the dry run shows %+v, want the object of the file with the addresses %v", svc, had)
	}
	deletion.DryRun = false
	if r, err := w.engine.Delete(t.Context(), deletion); err != nil || codes(r) != "" {
		t.Fatalf("%+v, %v", r.Errors, err)
	}
	if svc, there := w.snapshots.Latest().Service(entryOfFile); !there || !slices.Equal(svc.ClusterVIPs.Of("hub"), had) {
		t.Errorf("afterwards there is %+v, want the object of the file with the addresses %v", svc, had)
	}
}

// A hostname that no service may have is a problem of its own entry, whatever
// changes the configuration: its addresses would have no key in the store.
func TestUnusableHostnameIsAFinding(t *testing.T) {
	w := newFixture(t)
	r := w.must(strings.Replace(external("a.example.com"), "hosts: [a.example.com]", `hosts: ["*a.example.com"]`, 1))
	if len(r.Findings) != 2 || r.Findings[0].Code != "INVALID_HOSTNAME" || r.Findings[1].Code != "NO_EFFECT" ||
		r.Findings[1].Field != "spec.hosts[0]" {
		t.Errorf("findings %+v", r.Findings)
	}
}

// TestR36HubKeepsTheVIPsOfFoldersThatItDoesNotRead: of two hubs on one store, one has
// a folder of entries. The VIPs stay through changes that the other one makes, and go
// with the entry.
func TestR36HubKeepsTheVIPsOfFoldersThatItDoesNotRead(t *testing.T) {
	files, other := newFixture(t), newFixture(t)
	w := join(t, other.store, config.Named{Name: "FILE", Source: entriesOnly{files.store}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.engine.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	files.must(external("a.example.com"))
	had := w.addresses(entryOfFile)
	for _, host := range []string{"b.example.com", "c.example.com"} {
		other.must(external(host))
		if kept := other.views.Latest().State.AllocatedTo(entryOfFile); len(kept) != len(had) {
			t.Fatalf("after a change at the other hub, of the VIPs %v are left %v", had, kept)
		}
	}
	gone := apply.Deletion{Objects: []federation.ObjectKey{{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: "a"}}}
	if r, err := files.engine.Delete(t.Context(), gone); err != nil || codes(r) != "" {
		t.Fatal(codes(r), err)
	}
	for v := w.views.Latest(); len(v.State.AllocatedTo(entryOfFile)) > 0; v = w.views.Latest() {
		select {
		case <-v.Superseded():
		case <-t.Context().Done():
			t.Fatal("the VIPs of an entry that is gone are kept")
		}
	}
}
