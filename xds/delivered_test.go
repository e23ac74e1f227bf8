package xds

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// contents are the entries that a value has, by name.
func (t *delivered) contents() map[string]entry {
	all := map[string]entry{}
	for e := range t.all() {
		if e.sent != nil {
			all[e.sent.name] = entry{sent: e.sent, acked: e.acked}
		} else if e.acked != nil {
			all[e.acked.name] = entry{acked: e.acked}
		}
	}
	return all
}

// clientModel is what a client was told, in a map.
type clientModel map[string]entry

func (m clientModel) tell(name string, r *resource) {
	e := m[name]
	m.put(name, entry{sent: r, acked: e.acked, lapsed: e.acked != nil && (e.lapsed || r == nil)})
}

func (m clientModel) put(name string, e entry) {
	m[name] = e
	if e.sent == nil && e.acked == nil {
		delete(m, name)
	}
}

func (m clientModel) accept(f *sentResponse) {
	for _, r := range f.resources {
		if e, exists := m[r.name]; exists {
			if sameContent(e.sent, r) {
				m.put(r.name, entry{sent: e.sent, acked: e.sent})
			} else {
				m.put(r.name, entry{sent: e.sent, acked: r, lapsed: e.lapsed})
			}
		}
	}
	for _, name := range f.removed {
		m.put(name, entry{sent: m[name].sent})
	}
}

func (m clientModel) takeBack(f *sentResponse) {
	for _, r := range f.resources {
		if e := m[r.name]; e.sent == r {
			m.tell(r.name, e.acked)
		}
	}
}

// contents are the entries without what only the stream needs to know.
func (m clientModel) contents() map[string]entry {
	all := map[string]entry{}
	for name, e := range m {
		all[name] = entry{sent: e.sent, acked: e.acked}
	}
	return all
}

// clientHistory is a client and its model, and the values that were made of it.
type clientHistory struct {
	client clientState
	model  clientModel
	sent   []*sentResponse
	values []*delivered
	want   []map[string]entry
}

func (h *clientHistory) send(names []string, version string) {
	f := &sentResponse{}
	for _, name := range names {
		r := &resource{name: name, version: version}
		h.client.sent(name, r)
		h.model.tell(name, r)
		f.resources = append(f.resources, r)
	}
	h.sent = append(h.sent, f)
}

func (h *clientHistory) remove(name string) {
	h.client.sent(name, nil)
	h.model.tell(name, nil)
	h.sent = append(h.sent, &sentResponse{removed: []string{name}})
}

func (h *clientHistory) answer(accepted bool) {
	if len(h.sent) == 0 {
		return
	}
	f := h.sent[0]
	h.sent = h.sent[1:]
	if accepted {
		h.client.accept(f)
		h.model.accept(f)
		return
	}
	for _, r := range f.resources {
		h.client.takeBack(r)
	}
	h.model.takeBack(f)
}

func (h *clientHistory) publish() {
	h.values, h.want = append(h.values, h.client.slots.delivered()), append(h.want, h.model.contents())
}

// TestR88PropertyWhatWasToldIsAValue: whatever is sent, accepted, refused and forgotten, the
// value has what the stream has, and values that were made before stay as they were.
func TestR88PropertyWhatWasToldIsAValue(t *testing.T) {
	names := make([]string, 300) // several pages
	for i := range names {
		names[i] = fmt.Sprint("s", i)
	}
	name := rapid.SampledFrom(names)
	rapid.Check(t, func(t *rapid.T) {
		h := &clientHistory{client: clientState{slots: newSlots(newNameTable(), &account{})}, model: clientModel{}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				h.send(rapid.SliceOfNDistinct(name, 1, 20, rapid.ID[string]).Draw(t, "sent"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"))
			case 2:
				h.remove(name.Draw(t, "removed"))
			case 3, 4:
				h.answer(rapid.Bool().Draw(t, "accepted"))
			default:
				n := name.Draw(t, "forgotten")
				h.client.forget(n)
				delete(h.model, n)
			}
			if rapid.Bool().Draw(t, "published") {
				h.publish()
			}
		}
		h.publish()
		for i, v := range h.values {
			if got := v.contents(); !maps.Equal(got, h.want[i]) {
				t.Fatalf("value %d has %v, want %v", i, got, h.want[i])
			}
		}
	})
}

// TestR88AChangeOfWhatWasToldSharesTheRest: of a value with thousands of resources, a change
// of one makes one leaf and one branch, and an answer none.
func TestR88AChangeOfWhatWasToldSharesTheRest(t *testing.T) {
	h := &clientHistory{client: clientState{slots: newSlots(newNameTable(), &account{})}, model: clientModel{}}
	var names []string
	for i := range 3 * pageSize * pageSize / 2 {
		names = append(names, fmt.Sprint("s", i))
	}
	h.send(names, "1")
	h.answer(true)
	first := h.client.slots.delivered()
	h.send(names[7:8], "2")
	second := h.client.slots.delivered()
	before, differ := maps.Collect(first.leaves()), 0
	for number, l := range second.leaves() {
		if before[number] != l {
			differ++
		}
	}
	if differ != 1 || second.branches[1] != first.branches[1] {
		t.Errorf("%d leaves differ, want 1", differ)
	}
	if n := h.client.slots.names.find(names[7]); first.Lacks(n.number) || !second.Lacks(n.number) {
		t.Error("the value does not say what is on its way")
	}
	h.answer(true)
	third := h.client.slots.delivered()
	if !slices.Equal(third.branches, second.branches) || len(third.open) != 0 || third != h.client.slots.delivered() {
		t.Errorf("an answer leaves %d open entries, or makes other branches", len(third.open))
	}
}
