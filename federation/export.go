package federation

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds of the Multi-Cluster Services API (KEP-1645).
var (
	ServiceExportKind = Kind{multiClusterGroup, "ServiceExport"}
	ServiceImportKind = Kind{multiClusterGroup, "ServiceImport"}
)

const multiClusterGroup = "multicluster.x-k8s.io"

// ClusterSetDomain ends the names of services that clusters export.
const ClusterSetDomain = "clusterset.local"

// A ServiceExport of a cluster adds what the cluster's registry reports about the service
// NAME.NAMESPACE.svc.cluster.local to another service, NAME.NAMESPACE.svc.clusterset.local,
// which has the endpoints of exporting clusters and no others. What their shards disagree
// on is decided by the age of the exports. A service that a registry has under the name
// itself comes first.

// IsOfCluster reports whether objects of the kind are about the cluster that they are in,
// whatever the scope of their source.
func IsOfCluster(kind Kind) bool {
	return kind.Group == multiClusterGroup || kind == ConfigMapKind || kind == NamespaceKind
}

// IsClusterSet reports whether the hostname is that of exported services.
func (h Hostname) IsClusterSet() bool {
	return strings.HasSuffix(string(h), ".svc."+ClusterSetDomain)
}

// ExportedService is the service that the export offers to other clusters.
func ExportedService(export ObjectKey) ServiceKey {
	return ServiceKey{Hostname: ResolveHost(export.Name, export.Namespace), Namespace: export.Namespace}
}

// ClusterSetService is the service under which other clusters know an exported one.
func ClusterSetService(export ObjectKey) ServiceKey {
	return ServiceKey{Hostname: ResolveHostIn(ClusterSetDomain, export.Name, export.Namespace), Namespace: export.Namespace}
}

// exportOf is the key of the object that exports the service from all clusters.
func exportOf(service ServiceKey) (ObjectKey, bool) {
	name, is := strings.CutSuffix(string(service.Hostname), "."+service.Namespace+".svc."+DefaultDomain)
	return ObjectKey{Group: multiClusterGroup, Kind: ServiceExportKind.Name, Namespace: service.Namespace, Name: name}, is && name != ""
}

// mayExport is false for what is not a service of a cluster: aliases, what is outside of
// the mesh, and what ServiceEntries and other names declare.
func (s *Shard) mayExport(source ShardKey) bool {
	return s.NameOf == "" && s.ExternalName == "" && !s.MeshExternal && !source.Provider.OfConfiguration()
}

// exported is the shard as a part of the exported service. It has the age of the export,
// and no virtual addresses: those lead to the endpoints of all clusters.
func (s *Shard) exported(of Hostname, export *Object) *Shard {
	out := s.under(of)
	out.Created, out.Selector = export.Created, s.Selector
	return out
}

// exporting makes the services that clusters export, of the contributions to those of
// which they are exports.
type exporting struct {
	objects       *objectsTxn
	contributions *contributions
	touched       map[ServiceKey]bool // services whose exports changed
}

// noteObject notes that an object changed which may be an export.
func (x *exporting) noteObject(key ObjectKey) {
	if key.Of() == ServiceExportKind {
		x.touched[ExportedService(key)] = true
	}
}

// recompute brings exported services up to date with the marked services and the changed
// exports. Its cost is that of these.
func (x *exporting) recompute() {
	if len(x.touched) == 0 && !x.objects.has(ServiceExportKind) {
		return
	}
	for key := range x.contributions.dirty {
		if !x.touched[key] && len(x.exports(key)) > 0 {
			x.touched[key] = true
		}
	}
	for key := range x.touched {
		x.recomputeService(key)
	}
	clear(x.touched)
}

// exports are the objects that export the service, by cluster; the empty one means all.
func (x *exporting) exports(service ServiceKey) map[ClusterID]*Object {
	key, is := exportOf(service)
	if !is {
		return nil
	}
	found := map[ClusterID]*Object{}
	if o, ok := x.objects.byKey.Get(key.SortKey()); ok {
		found[""] = o
	}
	x.objects.byKey.WalkPrefix(key.SortKey()+nul, func(_ string, o *Object) bool {
		found[o.Key.Cluster] = o
		return false
	})
	return found
}

func (x *exporting) recomputeService(key ServiceKey) {
	exports := x.exports(key)
	want := map[ShardKey]*Shard{}
	for source, shard := range x.contributions.of(key).All() {
		export := exports[""]
		if export == nil {
			export = exports[source.Cluster]
		}
		if export != nil && shard.mayExport(source) {
			want[source] = shard.exported(key.Hostname, export)
		}
	}
	object, _ := exportOf(key)
	name := ClusterSetService(object)
	x.contributions.sayUnder(name, want)
	if len(x.contributions.of(name)) > 0 {
		x.contributions.dirty[name] = true // workloads that its selectors select may differ
	}
}

// exportedFirst compares the ages of two shards of an exported service.
func exportedFirst(host Hostname, a, b *Shard) int {
	if !host.IsClusterSet() {
		return 0
	}
	return compareAge(a.Created, b.Created)
}

// sameName is the port of an exported service that has the name of p and another number: a
// name leads to one port.
func (m *merger) sameName(p Port) *ServicePort {
	if p.Name == "" || !m.in.key.Hostname.IsClusterSet() {
		return nil
	}
	i := slices.IndexFunc(m.svc.Ports, func(have ServicePort) bool {
		return have.Name == p.Name && (have.Number != p.Number || have.Protocol.Transport() != p.Protocol.Transport())
	})
	if i < 0 {
		return nil
	}
	return &m.svc.Ports[i]
}

// joinPort has endpoints of a younger export serve the port under the number of the oldest.
func (m *merger) joinPort(have *ServicePort, p Port, d PortDeclaration) {
	winner := have.Declared[0].Shard.Cluster
	m.conflictWith(ConflictPortNumber, winner, d.Shard.Cluster, fmt.Sprintf("port %q is %s %d in %s and %s %d in %s",
		p.Name, have.Protocol.Transport(), have.Number, winner, p.Protocol.Transport(), p.Number, d.Shard.Cluster))
	if _, declared := have.DeclaredBy(d.Shard); declared || have.Protocol.Transport() != p.Protocol.Transport() {
		return
	}
	m.comparePort(have, d)
	have.Declared = append(have.Declared, d)
}
