package xds

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestR42PropertyWhatIsOpenIsListedOnce: whatever waits, is on its way or is refused, each resource is
// listed once, with the worst of its states, in the order of the numbers.
func TestR42PropertyWhatIsOpenIsListedOnce(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprint("s", i))
	}
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		table := newNameTable()
		sub := newSubscription(envoy.ClusterType, true, table, &account{}, nil)
		known := some.Draw(t, "names with numbers")
		for _, name := range known {
			table.holdResource(name)
		}
		want := map[string]fleet.OpenResource{}
		worsen := func(name string, state fleet.RolloutState) {
			r := want[name]
			r.State = max(r.State, state)
			want[name] = r
		}
		for _, name := range some.Draw(t, "refused") {
			sub.nacks.barred[name] = rejection{searching: true}
			want[name] = fleet.OpenResource{State: fleet.Waiting, Refused: true, Searching: true}
			if slices.Contains(known, name) && rapid.Bool().Draw(t, "has another") {
				sub.client.sent(name, claimed(name, "0"))
				want[name] = fleet.OpenResource{State: fleet.Accepted, Refused: true, Searching: true}
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "responses") {
			f := &sentResponse{}
			for _, name := range some.Draw(t, "on their way") {
				f.resources = append(f.resources, claimed(name, "1"))
				worsen(name, fleet.Delivered)
			}
			sub.responses.add(f)
		}
		for _, name := range some.Draw(t, "waiting") {
			sub.queue.enqueue(name, trigger{})
			worsen(name, fleet.Waiting)
		}
		got, bulk := sub.open()
		if bulk != fleet.Unaffected || !slices.IsSortedFunc(got, byNumber) {
			t.Fatalf("open: %+v, %v in bulk; want them by number, and none in bulk", got, bulk)
		}
		for _, r := range got {
			name := table.name(r.Number)
			w := want[name]
			delete(want, name)
			if r.State != w.State || r.Refused != w.Refused || r.Searching != w.Searching {
				t.Errorf("%s: %+v, want %+v", name, r, w)
			}
		}
		for name := range want {
			if slices.Contains(known, name) {
				t.Errorf("%s: not listed, or twice", name)
			}
		}
	})
}

// TestR62WhatIsOpenInBulkTakesNoRoom: when much is on its way, nothing is listed, and there is no room for it.
func TestR62WhatIsOpenInBulkTakesNoRoom(t *testing.T) {
	sub := newSubscription(envoy.ClusterType, true, newNameTable(), &account{}, nil)
	f := &sentResponse{}
	for i := range maxOpen + 1 {
		f.resources = append(f.resources, claimed(fmt.Sprint(i), "1"))
	}
	sub.responses.add(f)
	if got, bulk := sub.open(); bulk != fleet.Delivered || cap(got) != 0 {
		t.Errorf("%v in bulk, with room for %d; want %v, and none", bulk, cap(got), fleet.Delivered)
	}
	for i := range maxOpen + 1 {
		sub.queue.enqueue(fmt.Sprint(i), trigger{})
	}
	if got, bulk := sub.open(); bulk != fleet.Waiting || cap(got) != 0 {
		t.Errorf("%v in bulk, with room for %d; want %v, and none", bulk, cap(got), fleet.Waiting)
	}
}

// TestR88AResourceThatTookThePlaceOfAnotherIsAccepted: while a response is on its way, the same
// content comes to be that of another group; an answer to the response accepts it.
func TestR88AResourceThatTookThePlaceOfAnotherIsAccepted(t *testing.T) {
	c := clientState{slots: newSlots(newNameTable(), &account{})}
	first, second := claimed("s", "1"), claimed("s", "1")
	c.sent("s", first)
	c.sent("s", second)
	c.accept(&sentResponse{resources: []*resource{first}})
	if e := c.slots.get("s"); e.sent != second || e.acked != second || len(c.slots.delivered().open) != 0 {
		t.Errorf("%+v, with %d not accepted; want the second, accepted", e, len(c.slots.delivered().open))
	}
}
