package config_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

func TestAllocateIsStableAndNeverGivesAnAddressTwice(t *testing.T) {
	v4, v6 := netip.MustParsePrefix("240.240.0.0/16"), netip.MustParsePrefix("2001:2::/48")
	existing := map[federation.ServiceKey][]netip.Addr{}
	taken := map[netip.Addr]federation.ServiceKey{}
	var wanted []federation.ServiceKey
	for i := range 5000 {
		wanted = append(wanted, shop(fmt.Sprintf("s%d.example.com", i)))
	}
	for part := range slices.Chunk(wanted, 1250) {
		reversed := slices.Clone(part)
		slices.Reverse(reversed)
		given, again := config.Allocate(existing, part), config.Allocate(existing, reversed)
		for _, key := range part {
			if len(given[key]) != 2 || !slices.Equal(given[key], again[key]) || !v4.Contains(given[key][0]) || !v6.Contains(given[key][1]) {
				t.Fatalf("%s has %v, and %v when asked in another order", key, given[key], again[key])
			}
			existing[key] = given[key]
			for _, ip := range given[key] {
				if other, is := taken[ip]; is {
					t.Fatalf("%s is given to %s and %s", ip, key, other)
				}
				taken[ip] = key
			}
		}
	}
	if more := config.Allocate(existing, wanted); len(more) > 0 {
		t.Errorf("%d services that have addresses were given new ones", len(more))
	}
}

func TestAllocateEndsWhenTheRangeIsFull(t *testing.T) {
	var all []netip.Addr
	for ip := netip.MustParseAddr("240.240.0.0"); ip.Compare(netip.MustParseAddr("240.240.255.255")) <= 0; ip = ip.Next() {
		all = append(all, ip)
	}
	if given := config.Allocate(map[federation.ServiceKey][]netip.Addr{shop("all"): all}, []federation.ServiceKey{shop("a")}); len(given) > 0 {
		t.Errorf("given: %v", given)
	}
}

// write makes the missing allocations part of the configuration, as a store
// would.
func (w *fixture) write() []config.Change {
	missing := w.state.MissingAllocations()
	var events []config.Event
	for _, c := range missing {
		old, _ := w.state.Object(c.Key)
		events = append(events, config.Event{Old: old, New: c.Object})
	}
	w.take(events)
	return missing
}

func (w *fixture) vips(host string) []netip.Prefix {
	svc, ok := w.mesh.Service(shop(host))
	if !ok {
		return nil
	}
	return svc.ClusterVIPs.Of("hub")
}

const automatic = `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}]}`

// TestAutomaticVIPsSurvive gives a VIP once: it is the same in a preview, when
// it is written, after a restart, with more entries; and it is freed with the
// last entry of the host.
func TestAutomaticVIPsSurvive(t *testing.T) {
	w := newFixture()
	m := object(t, 2, entry("a", automatic))
	preview := w.state.Preview([]config.Event{{New: m}}, 2).Edit
	w.apply(t, entry("a", automatic))
	if len(w.vips("a.example.com")) != 0 {
		t.Error("there is a VIP before one is written")
	}
	if missing := w.write(); len(missing) != 1 || missing[0].Object == nil || missing[0].Object.CheckName() != nil {
		t.Fatalf("missing: %+v", missing)
	}
	first := w.vips("a.example.com")
	if len(first) != 2 || !slices.Equal(preview.Services.Set[shop("a.example.com")].VIPs, first) {
		t.Errorf("VIPs %v, previewed %v", first, preview.Services.Set[shop("a.example.com")].VIPs)
	}
	if _, shown := w.mesh.Object(federation.ObjectKey{
		Group: "isthmus.dev", Kind: "Allocation", Namespace: "shop",
		Name: "a.example.com",
	}); shown {
		t.Error("allocations are shown")
	}
	w.apply(t, entry("b", `{hosts: [a.example.com, b.example.com], resolution: STATIC, ports: [{number: 81, name: more}]}`))
	if missing := w.write(); len(missing) != 1 || missing[0].Key.Name != "b.example.com" {
		t.Errorf("missing: %+v", missing)
	}
	restarted := newFixture()
	var all []config.Event
	for o := range w.state.Objects() {
		all = append(all, config.Event{New: o})
	}
	restarted.take(all)
	if len(restarted.state.MissingAllocations()) > 0 || !slices.Equal(restarted.vips("a.example.com"), first) {
		t.Errorf("after a restart: %v", restarted.vips("a.example.com"))
	}
	w.delete("ServiceEntry", "a")
	if missing := w.write(); len(missing) > 0 || !slices.Equal(w.vips("a.example.com"), first) {
		t.Errorf("with one entry left: %v", w.vips("a.example.com"))
	}
	w.delete("ServiceEntry", "b")
	if missing := w.write(); len(missing) != 2 || missing[0].Object != nil || missing[1].Object != nil {
		t.Errorf("to be freed: %+v", missing)
	}
	if w.state.Len() != 0 || len(w.state.MissingAllocations()) > 0 {
		t.Errorf("%d objects are left", w.state.Len())
	}
}

func TestAddressOfItsOwnTakesTheAutomaticOneAway(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", automatic))
	w.write()
	w.apply(t, entry("a", `{hosts: [a.example.com], addresses: [192.0.2.1], resolution: STATIC, ports: [{number: 80, name: http}]}`))
	if got := w.vips("a.example.com"); !slices.Equal(got, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}) || len(w.write()) > 0 {
		t.Errorf("VIPs %v", got)
	}
}

// TestR36EntriesThatNameAnAutomaticVIP: the address that an entry names is its own.
// The service that had it as an automatic VIP gets others, once, in the same commit;
// no other service notices.
func TestR36EntriesThatNameAnAutomaticVIP(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", automatic), entry("b", strings.ReplaceAll(automatic, "a.example.com", "b.example.com")))
	w.write()
	a, b := w.vips("a.example.com"), w.vips("b.example.com")
	static := func(address string) string {
		return entry("static",
			fmt.Sprintf(`{hosts: [static.example.com], addresses: [%q], resolution: STATIC, ports: [{number: 80, name: http}]}`, address))
	}
	for _, taken := range a { // by IPv4, then by IPv6
		preview := w.state.Preview([]config.Event{{New: object(t, 9, static(taken.Addr().String()))}}, 9)
		if len(preview.Missing) != 1 || preview.Missing[0].Object == nil {
			t.Fatalf("with %s taken, the commit would also change %+v", taken, preview.Missing)
		}
	}
	taken := a[0]
	w.apply(t, static(taken.Addr().String()))
	if got := w.vips("a.example.com"); slices.Contains(got, taken) {
		t.Errorf("before others are written, a has %v", got)
	}
	if missing := w.write(); len(missing) != 1 || missing[0].Key.Name != "a.example.com" {
		t.Fatalf("the changes are %+v", missing)
	}
	moved := w.vips("a.example.com")
	if len(moved) != 2 || slices.Contains(moved, a[0]) || slices.Contains(moved, a[1]) {
		t.Errorf("a has %v, had %v", moved, a)
	}
	if got := w.vips("static.example.com"); !slices.Equal(got, a[:1]) || !slices.Equal(w.vips("b.example.com"), b) {
		t.Errorf("the static entry has %v, b has %v", got, w.vips("b.example.com"))
	}
	w.delete("ServiceEntry", "static")
	if got := w.vips("a.example.com"); len(w.write()) > 0 || !slices.Equal(got, moved) {
		t.Errorf("without the static entry, a has %v", got)
	}
	w.apply(t, static(moved[0].Addr().String()))
	if missing := w.write(); len(missing) != 1 || len(w.vips("a.example.com")) != 2 || slices.Contains(w.vips("a.example.com"), moved[0]) {
		t.Errorf("taken again: %+v, a has %v", missing, w.vips("a.example.com"))
	}
}

// TestR36NewVIPsAvoidThoseOfEntries: whichever comes first.
func TestR36NewVIPsAvoidThoseOfEntries(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", automatic))
	w.write()
	first := w.vips("a.example.com")
	w = newFixture()
	w.apply(t,
		entry("static", fmt.Sprintf(`{hosts: [static.example.com], addresses: [%q], resolution: STATIC, ports: [{number: 80, name: http}]}`,
			first[0].Addr())))
	w.apply(t, entry("a", automatic))
	if missing := w.write(); len(missing) != 1 || len(w.vips("a.example.com")) != 2 || slices.Contains(w.vips("a.example.com"), first[0]) {
		t.Errorf("a has %v", w.vips("a.example.com"))
	}
}
