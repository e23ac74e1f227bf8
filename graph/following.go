package graph

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// following says which things a subscriber follows. Equal ones follow the same.
type following struct {
	services, clusters, objects, networks bool
	status                                bool                 // of objects
	counts                                bool                 // of the services and endpoints of clusters
	proxies                               bool                 // streams of them, which have no cursor
	cluster                               federation.ClusterID // "": any
	hostname                              string               // a part of it, in lower case
	inNamespace                           bool
	namespace                             string // where inNamespace
	group, kind                           string // of objects; "": any
}

func newFollowing(filter *model.ChangeFilter) following {
	if filter == nil {
		return following{services: true, clusters: true, objects: true, networks: true, status: true}
	}
	has := func(kind model.ChangeKind) bool { return filter.Kinds == nil || slices.Contains(filter.Kinds, kind) }
	return following{
		services: has(model.ChangeKindService), clusters: has(model.ChangeKindCluster), objects: has(model.ChangeKindConfigObject),
		networks: has(model.ChangeKindNetwork), status: has(model.ChangeKindDelivery),
		proxies: slices.Contains(filter.Kinds, model.ChangeKindProxy),
		cluster: federation.ClusterID(value(filter.ClusterID)), hostname: strings.ToLower(value(filter.HostnameContains)),
		inNamespace: filter.Namespace != nil, namespace: value(filter.Namespace),
		group: value(filter.ObjectGroup), kind: value(filter.ObjectKind),
		counts: slices.Contains(filter.Kinds, model.ChangeKindCounts),
	}
}

// hasService reports whether the service is followed; nil is not.
func (f following) hasService(of *federation.Service) bool {
	return of != nil && f.services && f.isIn(of.Key.Namespace) && strings.Contains(string(of.Key.Hostname), f.hostname) &&
		(f.cluster == "" || slices.ContainsFunc(of.Order(), func(s federation.ShardKey) bool { return s.Cluster == f.cluster }))
}

// hasCluster reports whether the cluster is followed; nil is not.
func (f following) hasCluster(of *federation.Cluster) bool {
	return of != nil && f.clusters && (f.cluster == "" || of.ID == f.cluster)
}

// hasNetwork reports whether the network is followed; nil is not.
func (f following) hasNetwork(of *federation.Network) bool {
	return of != nil && f.networks && (f.cluster == "" || slices.Contains(of.Clusters, f.cluster))
}

// hasObject reports whether the object is followed; nil is not.
func (f following) hasObject(of *federation.Object) bool {
	return of != nil && f.objects && !kind.Internal(of.Key.Of()) && f.isIn(of.Key.Namespace) && f.isOfKind(of.Key)
}

// hasStatus reports whether the status of the object is followed.
func (f following) hasStatus(key federation.ObjectKey) bool {
	return f.status && f.isIn(key.Namespace) && f.isOfKind(key)
}

func (f following) isOfKind(key federation.ObjectKey) bool {
	return (f.group == "" || key.Group == f.group) && (f.kind == "" || key.Kind == f.kind)
}

// hasProxy reports whether the stream is followed.
func (f following) hasProxy(of *fleet.Proxy) bool {
	return f.proxies && f.isIn(of.Namespace) && (f.cluster == "" || of.Cluster == f.cluster)
}

func (f following) isIn(namespace string) bool { return !f.inNamespace || namespace == f.namespace }

// content hashes what a subscriber has: which things, of which store, and each
// thing with its content. That is the same on every hub and after a restart.
func (f following) content(epoch string, digest model.Digest) []byte {
	f.status = false // the status of objects is not theirs
	whole := sha256.Sum256(append(digest.Bytes(), fmt.Sprintf("%q%+v", epoch, f)...))
	return whole[:]
}
