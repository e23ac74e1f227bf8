package kubernetes

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"isthmus.dev/isthmus/federation"
)

// An object that makes the hub panic would still be there after a restart of the registry. It is set aside alone: what was known of
// it before stays, all other objects go on, and a problem of the cluster names it until it changes or is deleted (R12).

// faulty replaces an object that could not be read.
type faulty struct {
	record
	kind  kind
	cause any
	stack []byte
}

func (*faulty) size() int64 { return 0 }

// set takes a new or changed object.
func (m *model) set(o object) {
	if f, is := o.(*faulty); is {
		m.quarantine(subject{f.kind, f.k}, f.cause, f.stack)
		return
	}
	at := subject{kindOf(o), o.base().k}
	defer func() {
		if cause := recover(); cause != nil {
			m.quarantine(at, cause, debug.Stack())
		}
	}()
	delete(m.faulty, at)
	m.take(o)
}

func kindOf(o object) kind {
	switch o.(type) {
	case *service:
		return kindServices
	case *slice:
		return kindSlices
	case *pod:
		return kindPods
	case *node:
		return kindNodes
	case *defaults:
		return kindNamespaces
	case *namespace:
		if o.base().k.Name == istioSystem {
			return kindIstioNamespace
		}
	}
	return kindNamespace
}

func (m *model) quarantine(at subject, cause any, stack []byte) {
	m.faulty[at] = struct{}{}
	m.blame(at.String(), "", at, cause, stack)
}

// blame makes the panic a problem of the object.
func (m *model) blame(owner, field string, at subject, cause any, stack []byte) {
	m.log.Error("leaving an object of a cluster as it was: the hub panicked over it", slog.String("object", at.String()),
		slog.Any("panic", cause), slog.String("stack", string(stack)))
	m.problems.set(owner, []federation.Problem{{
		Code: codeFault, Object: at.String(), Field: field,
		Message: fmt.Sprintf("the hub cannot process this object, which is a fault of the hub; what was known of it stays in use; report it with the stack in the hub's log (%.200v)", cause),
	}})
}

// keepBefore has what was passed on of the object stay as it was, after a panic.
func (m *model) keepBefore(at subject, owner string) {
	if cause := recover(); cause != nil {
		m.blame(owner, "(derived)", at, cause, debug.Stack())
	}
}
