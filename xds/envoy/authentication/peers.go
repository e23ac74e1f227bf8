// Package authentication says which connections and requests workloads accept: those with the
// mutual TLS that PeerAuthentications demand, and with the tokens that RequestAuthentications
// verify.
package authentication

import (
	"maps"
	"slices"
	"strings"

	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
)

// Mode says whether connections are mutual TLS.
type Mode = security.PeerAuthentication_MutualTLS_Mode

// The modes of a port.
const (
	Permissive = security.PeerAuthentication_MutualTLS_PERMISSIVE // mutual TLS and plain text
	Strict     = security.PeerAuthentication_MutualTLS_STRICT     // mutual TLS alone
	Disable    = security.PeerAuthentication_MutualTLS_DISABLE    // plain text alone
	unset      = security.PeerAuthentication_MutualTLS_UNSET
)

// Decision is a mode, and the object that decides it; nil: the mode is the default.
type Decision struct {
	Mode
	By *federation.Object
}

// Modes are what a workload accepts on its ports.
type Modes struct {
	All   Decision            // of the ports that portLevelMtls does not name
	ports map[uint16]Decision // those of portLevelMtls
}

// Of is what the workload accepts on the port.
func (m Modes) Of(port uint16) Decision {
	if d, has := m.ports[port]; has {
		return d
	}
	return m.All
}

// Ports are those of portLevelMtls, sorted.
func (m Modes) Ports() []uint16 { return slices.Sorted(maps.Keys(m.ports)) }

// ModesOf are those of the workloads beside the view's proxies.
func ModesOf(v *facet.View) Modes {
	labels := map[string]string{}
	for label := range strings.SplitSeq(v.Facet.Labels, ",") {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = value
	}
	p := NewPeers(v.Reader, v.Facet.Objects)
	return p.modes(p.own, v.Facet.Namespace, labels, slices.Sorted(maps.Keys(labels)))
}

// SelectsPeers reports whether the PeerAuthentication may be for a proxy that has these labels.
func SelectsPeers(spec *security.PeerAuthentication, hasLabels func(map[string]string) bool) bool {
	return hasLabels(spec.GetSelector().GetMatchLabels())
}

// Peers finds the modes of workloads. It reads each object once.
type Peers struct {
	reader *federation.Reader
	own    federation.ClusterID // whose objects the reader sees
	root   string
	named  map[clusterName][]*federation.Object
	plain  map[clusterName]bool // by namespace: whether an object has plainText
}

type clusterName struct {
	cluster federation.ClusterID
	name    string
}

// NewPeers reads by a reader that sees the objects of the cluster.
func NewPeers(r *federation.Reader, own federation.ClusterID) *Peers {
	return &Peers{reader: r, own: own, named: map[clusterName][]*federation.Object{}, plain: map[clusterName]bool{}}
}

// PlainTextAlone returns the object because of which the endpoint accepts nothing but plain
// text on the port; nil: there is none. Where no PeerAuthentication disables mutual TLS, it
// reads nothing else.
func (p *Peers) PlainTextAlone(
	s *federation.Service, group federation.ShardEndpoints, e *federation.Endpoint, port uint16,
) *federation.Object {
	in := group.ClusterOf(e)
	namespace, _, known := strings.Cut(e.Workload, "/")
	if !known {
		namespace = s.Key.Namespace
	}
	if !p.anyIn(in, namespace) && !p.anyIn(in, p.rootNamespace()) {
		return nil
	}
	keys := p.reader.Objects().ProxyLabels()
	d := p.modes(in, namespace, group.TopologyOf(e).Labels(e.Labels, keys), keys).Of(port)
	if d.Mode != Disable {
		return nil
	}
	return d.By
}

// rootNamespace is the one whose objects are for all namespaces.
func (p *Peers) rootNamespace() string {
	if p.root == "" {
		p.root = p.reader.Mesh().Root()
	}
	return p.root
}

// anyIn reports whether an object of the namespace has workloads accept plain text alone. It
// reads one of them, however many there are.
func (p *Peers) anyIn(in federation.ClusterID, namespace string) bool {
	key := clusterName{in, namespace}
	found, known := p.plain[key]
	if known {
		return found
	}
	p.reader.For(in)
	for range p.reader.Objects().Named(federation.PeerAuthenticationKind, federation.PlainTextName+namespace) {
		found = true
		break
	}
	p.reader.For(p.own)
	p.plain[key] = found
	return found
}

// of are the PeerAuthentications of that name that proxies of the cluster see, the oldest first.
func (p *Peers) of(in federation.ClusterID, name string) []*federation.Object {
	key := clusterName{in, name}
	found, known := p.named[key]
	if known {
		return found
	}
	p.reader.For(in)
	for o := range p.reader.Objects().Named(federation.PeerAuthenticationKind, name) {
		found = append(found, o)
	}
	p.reader.For(p.own)
	slices.SortFunc(found, (*federation.Object).CompareAge)
	p.named[key] = found
	return found
}

// modes are those of a workload of the cluster and namespace. An object that selects it by its
// labels comes before one for its namespace, and that before one for the mesh; of several the
// oldest counts. keys are the labels to look at.
func (p *Peers) modes(in federation.ClusterID, namespace string, labels map[string]string, keys []string) Modes {
	m := Modes{All: Decision{Mode: Permissive}}
	take := func(all []*federation.Object) *security.PeerAuthentication {
		if len(all) == 0 {
			return nil
		}
		spec, _ := all[0].Spec.(*security.PeerAuthentication)
		if mode := spec.GetMtls().GetMode(); mode != unset {
			m.All = Decision{mode, all[0]}
		}
		return spec
	}
	root := p.rootNamespace()
	take(p.of(in, federation.WorkloadsName+root))
	if namespace == root {
		return m // there, a selector selects nothing
	}
	take(p.of(in, federation.WorkloadsName+namespace))
	var selecting []*federation.Object
	for _, key := range keys {
		value, has := labels[key]
		if !has {
			continue
		}
		for _, o := range p.of(in, federation.WorkloadsName+namespace+"/"+key+"="+value) {
			if spec, ok := o.Spec.(*security.PeerAuthentication); ok &&
				federation.MatchesLabels(labels, []map[string]string{spec.GetSelector().GetMatchLabels()}) {
				selecting = append(selecting, o)
			}
		}
	}
	slices.SortFunc(selecting, (*federation.Object).CompareAge)
	spec := take(selecting)
	for number, port := range spec.GetPortLevelMtls() {
		if mode := port.GetMode(); mode != unset && number == uint32(uint16(number)) {
			if m.ports == nil {
				m.ports = map[uint16]Decision{}
			}
			m.ports[uint16(number)] = Decision{mode, selecting[0]}
		}
	}
	return m
}
