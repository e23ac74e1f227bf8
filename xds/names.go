package xds

import (
	"iter"
	"sync"
)

// nameTable numbers the names of resources, once for all streams: what a stream
// keeps of a resource is a slot, not a name (R62). A number means the same
// name for as long as it is held.
type nameTable struct {
	numbers sync.Map // string to uint32; written with mu held, and read by every stream without it

	mu    sync.RWMutex
	names []heldName // by number
	free  []uint32
}

type heldName struct {
	name      string
	holders   int
	resources int // those of the holders that have a resource of that name
}

func newNameTable() *nameTable { return &nameTable{} }

// find returns the number of a name that is held.
func (t *nameTable) find(name string) (number uint32, held bool) {
	if n, ok := t.numbers.Load(name); ok {
		return n.(uint32), true
	}
	return 0, false
}

// held returns the numbers of those names that are held.
func (t *nameTable) held(names []string) []uint32 {
	var numbers []uint32
	for _, name := range names {
		if number, held := t.find(name); held {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// hold returns the number of the name, which stays until as many releases, and
// whether there is a resource of that name.
func (t *nameTable) hold(name string) (number uint32, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	number = t.add(name)
	return number, t.names[number].resources > 0
}

// holdResource is hold for who has a resource of that name.
func (t *nameTable) holdResource(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[t.add(name)].resources++
}

func (t *nameTable) exists(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	number, held := t.find(name)
	return held && t.names[number].resources > 0
}

func (t *nameTable) add(name string) uint32 {
	number, known := t.find(name)
	if !known {
		if last := len(t.free) - 1; last >= 0 {
			number, t.free = t.free[last], t.free[:last]
		} else {
			number = uint32(len(t.names))
			t.names = append(t.names, heldName{})
		}
		t.names[number].name = name
		t.numbers.Store(name, number)
	}
	t.names[number].holders++
	return number
}

func (t *nameTable) release(numbers iter.Seq[uint32]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for number := range numbers {
		t.drop(number)
	}
}

func (t *nameTable) drop(number uint32) {
	held := &t.names[number]
	held.holders--
	if held.holders == 0 {
		t.numbers.Delete(held.name)
		*held = heldName{}
		t.free = append(t.free, number)
	}
}

// releaseResources ends as many calls of holdResource.
func (t *nameTable) releaseResources(names iter.Seq[string]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range names {
		if number, held := t.find(name); held {
			t.names[number].resources--
			t.drop(number)
		}
	}
}

// name is that of a number that the caller holds.
func (t *nameTable) name(number uint32) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names[number].name
}
