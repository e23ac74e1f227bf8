package validation

import "strconv"

// path is where a value is in an object. It is written, as Kubernetes does, only where something
// is wrong: most paths are of values that are right.
type path struct {
	self *path // the same path, shared by all paths below it; nil: nothing is below it so far
	up   *path // nil: at the top
	name string
	kind step
	at   int // of an item
}

// step is how a path leads on from the one above.
type step int

const (
	toField step = iota
	toItem
	toEntry
)

// spec is the path of the spec of an object.
var spec = path{name: "spec"}.shared()

// shared is the path for many paths below it.
func (p path) shared() path {
	if p.self == nil {
		p.self = &path{up: p.up, name: p.name, kind: p.kind, at: p.at}
		p.self.self = p.self
	}
	return p
}

func (p path) field(name string) path {
	if name == "" {
		return p
	}
	return path{up: p.shared().self, name: name}
}

func (p path) item(i int) path { return path{up: p.shared().self, kind: toItem, at: i} }

func (p path) entry(key string) path { return path{up: p.shared().self, kind: toEntry, name: key} }

// String is the path as Kubernetes writes it.
func (p path) String() string {
	switch {
	case p.kind == toItem:
		return p.up.String() + "[" + strconv.Itoa(p.at) + "]"
	case p.kind == toEntry:
		return p.up.String() + "[" + p.name + "]"
	case p.up != nil:
		return p.up.String() + "." + p.name
	}
	return p.name
}
