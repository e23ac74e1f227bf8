package xds

import (
	"iter"
	"sync"
)

// nameTable numbers the names of resources, once for all streams: what a stream
// keeps of a resource is a slot, not a name (R62). A number means the same
// name for as long as it is held.
type nameTable struct {
	numbers sync.Map // string to *numberedName; written with mu held, and read by every stream without it

	mu    sync.RWMutex
	names []heldName // by number
	free  []uint32
}

// numberedName is a name and its number. It is never changed.
type numberedName struct {
	name   string
	number uint32
}

type heldName struct {
	*numberedName
	holders   int
	resources int // those of the holders that have a resource of that name
}

func newNameTable() *nameTable { return &nameTable{} }

// find returns the table's copy of a name that is held, with its number; nil: it is not held.
func (t *nameTable) find(name string) *numberedName {
	if n, held := t.numbers.Load(name); held {
		return n.(*numberedName)
	}
	return nil
}

// held returns the numbers of those names that are held.
func (t *nameTable) held(names []string) []uint32 {
	var numbers []uint32
	for _, name := range names {
		if n := t.find(name); n != nil {
			numbers = append(numbers, n.number)
		}
	}
	return numbers
}

// hold returns the name with its number, which stays until as many releases, and
// whether there is a resource of that name.
func (t *nameTable) hold(name string) (n *numberedName, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.add(name)
	return held.numberedName, held.resources > 0
}

// holdResource is hold for who has a resource of that name.
func (t *nameTable) holdResource(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(name).resources++
}

func (t *nameTable) exists(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(name)
	return n != nil && t.names[n.number].resources > 0
}

// add counts one holder more. What it returns is valid as long as the lock is held.
func (t *nameTable) add(name string) *heldName {
	n := t.find(name)
	if n == nil {
		n = &numberedName{name: name, number: t.freeNumber()}
		t.names[n.number].numberedName = n
		t.numbers.Store(name, n)
	}
	held := &t.names[n.number]
	held.holders++
	return held
}

func (t *nameTable) freeNumber() (number uint32) {
	if last := len(t.free) - 1; last >= 0 {
		number, t.free = t.free[last], t.free[:last]
		return number
	}
	t.names = append(t.names, heldName{})
	return uint32(len(t.names) - 1)
}

// release ends one hold of the number.
func (t *nameTable) release(number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(number)
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
		if n := t.find(name); n != nil {
			t.names[n.number].resources--
			t.drop(n.number)
		}
	}
}

// name is that of a number that the caller holds.
func (t *nameTable) name(number uint32) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names[number].name
}
