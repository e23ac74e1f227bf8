package kubernetes

import (
	"cmp"

	"isthmus.dev/isthmus/federation"
)

// row is what the model does with the objects of one kind.
type row struct {
	title   string // of its objects, before their names
	part    string // of the objects, if it is not about the whole of them
	unnamed bool   // its objects are of no namespace
	// identity: it says which cluster it is, and nothing of what the cluster has.
	identity bool
	// permanent: its objects exist as long as the cluster; they are not removed.
	permanent bool
	put       func(*model, key, object)   // nil: the object does not exist any more
	kept      func(*model) map[key]string // versions of the objects that the model has; nil if permanent
}

// rows are those of all kinds.
var rows = [kinds]row{
	kindServices: {
		title: "Service", put: putting((*model).putService),
		kept: func(m *model) map[key]string { return versions(m.services) },
	},
	kindSlices: {
		title: "EndpointSlice", put: putting((*model).putSlice),
		kept: func(m *model) map[key]string { return versions(m.slices.all) },
	},
	kindPods: {
		title: "Pod", put: putting((*model).putPod),
		kept: func(m *model) map[key]string { return versions(m.pods) },
	},
	kindNodes: {title: "Node", unnamed: true, put: putting((*model).putNode), kept: keptNodes},
	kindNamespaces: {
		title: federation.NamespaceKind.Name, part: "defaults of ", unnamed: true, put: putting((*model).putDefaults),
		kept: func(m *model) map[key]string { return versions(m.defaults) },
	},
	kindNamespace: {title: federation.NamespaceKind.Name, unnamed: true, identity: true, permanent: true, put: putting(putNamespace)},
	kindIstioNamespace: {
		title: federation.NamespaceKind.Name, unnamed: true, identity: true, put: putting(putNamespace), kept: keptNamespace,
	},
}

func putting[T object](put func(*model, key, T)) func(*model, key, object) {
	return func(m *model, k key, o object) {
		of, _ := o.(T)
		put(m, k, of)
	}
}

// subject is an object of the cluster.
type subject struct {
	kind kind
	k    key
}

func (s subject) String() string {
	if rows[s.kind].unnamed {
		return rows[s.kind].title + " " + s.k.Name
	}
	return rows[s.kind].title + " " + s.k.String()
}

// owner is whose problems the model keeps together.
func (s subject) owner() string { return rows[s.kind].part + s.String() }

// put has the model know the object as it is now, with its problems; nil: it does not exist any more.
func (s subject) put(m *model, o object, problems []federation.Problem) {
	rows[s.kind].put(m, s.k, o)
	m.problems.set(s.owner(), problems)
}

func (m *model) take(o object) { subject{kindOf(o), o.base().k}.put(m, o, o.base().problems) }

// remove takes an object away.
func (m *model) remove(kind kind, k key) {
	at := subject{kind, k}
	delete(m.faulty, at)
	if !rows[kind].permanent {
		at.put(m, nil, nil)
	}
}

// kept are the versions of the objects of a kind that the model has.
func (m *model) kept(kind kind) map[key]string {
	if rows[kind].permanent {
		return nil
	}
	return rows[kind].kept(m)
}

func keptNodes(m *model) map[key]string {
	out := make(map[key]string, len(m.nodes))
	for name, n := range m.nodes {
		out[key{Name: name}] = n.version
	}
	return out
}

func keptNamespace(m *model) map[key]string {
	if _, exists := m.named[istioSystem]; exists {
		return map[key]string{{Name: istioSystem}: ""}
	}
	return nil
}

// putNamespace takes the network that a namespace names for the cluster.
func putNamespace(m *model, k key, n *namespace) {
	delete(m.named, k.Name)
	if n != nil {
		m.named[k.Name] = n.network
	}
	m.setNetwork(cmp.Or(m.named[system], m.named[istioSystem]))
}
