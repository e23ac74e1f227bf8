package derive

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/smallmap"
)

// Affected returns the names that may be computed differently after the changes, which
// lead to the snapshot; a name may be in it several times. With All it is not known
// which are: every name may be.
func (x *Index[N]) Affected(c federation.ChangeSet, s *federation.Snapshot) []N {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []N
	for _, change := range c.Services {
		found = x.ofService(found, change, s)
	}
	for _, at := range c.Addresses {
		found = collect(found, x.addresses[at])
		found = collect(found, x.anywhere[at.Addr])
	}
	for _, id := range c.Clusters {
		found = collect(found, x.clusters[id])
	}
	if len(c.Clusters) > 0 {
		found = collect(found, x.clusters[federation.AnyCluster])
	}
	for _, change := range c.Objects {
		found = x.ofObject(found, change, s)
	}
	for _, id := range c.Networks {
		found = collect(found, x.networks[id])
	}
	for _, from := range c.KeySets {
		found = collect(found, x.keySets[from])
	}
	for _, of := range c.Problems {
		found = collect(found, x.problems[of])
	}
	if c.Settings {
		found = collect(found, x.settings)
	}
	if c.Labels {
		found = collect(found, x.labels)
	}
	return found
}

// ofService are those that read the service, and those that would have found it as it
// is now: at its ports and VIPs, by its hostname or as another name of one.
func (x *readers[N]) ofService(found []N, c federation.ServiceChange, s *federation.Snapshot) []N {
	for name, reasons := range x.services[c.Key].All() {
		if reasons&c.Reasons != 0 {
			found = append(found, name)
		}
	}
	if c.Reasons&federation.ReasonSpec == 0 {
		return found
	}
	found = collect(found, x.hostnames[c.Key.Hostname])
	found = collect(found, x.specs)
	svc, exists := s.Service(c.Key)
	if !exists {
		return found
	}
	if svc.ExternalName != "" {
		found = collect(found, x.hostnames[svc.ExternalName])
	}
	if len(x.ports) > 0 {
		for _, p := range svc.Ports {
			found = collect(found, x.ports[p.Number])
		}
	}
	if len(x.vips) > 0 {
		for _, vip := range svc.SingleVIPs() {
			found = collect(found, x.vips[vip])
		}
	}
	return found
}

// ofObject are those that read the object, and those that would have found it as it is
// now: by its names or in its namespace.
func (x *readers[N]) ofObject(found []N, c federation.ObjectChange, s *federation.Snapshot) []N {
	found = collect(found, x.objects[c.Key])
	cluster := c.Key.Cluster
	if cluster != "" {
		found = collect(found, x.sets[federation.ObjectSet{Cluster: cluster}])
	}
	o, exists := s.Object(c.Key)
	if !exists {
		return found
	}
	for _, of := range [...]federation.ClusterID{cluster, federation.AnyCluster} {
		found = x.ofNames(found, o, of)
		for _, namespace := range [...]string{c.Key.Namespace, federation.AllNamespaces} {
			found = collect(found, x.sets[federation.ObjectSet{Kind: c.Key.Of(), Namespace: namespace, Cluster: of}])
		}
	}
	return found
}

// ofNames are those that would have found the object by one of its names, among those of the
// cluster.
func (x *readers[N]) ofNames(found []N, o *federation.Object, cluster federation.ClusterID) []N {
	kind := o.Key.Of()
	for _, name := range o.Names {
		found = collect(found, x.named[federation.ObjectName{Kind: kind, Name: name, Cluster: cluster}])
		if name[:min(len(name), 1)] != "*" {
			found = collect(found, x.hosts[federation.ObjectName{Kind: kind, Name: name, Cluster: cluster}])
			continue
		}
		for host, names := range x.hosts {
			if host.Kind == kind && host.Cluster == cluster && isAbout(name, host.Name) {
				found = collect(found, names)
			}
		}
	}
	return found
}

func collect[N comparable](found []N, names smallmap.Set[N]) []N {
	for name := range names.All() {
		found = append(found, name)
	}
	return found
}

// OfObject returns what was computed from the object.
func (x *Index[N]) OfObject(key federation.ObjectKey) []N {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(x.objects[key].Keys())
}

// OfService returns what was computed from the service.
func (x *Index[N]) OfService(key federation.ServiceKey) []N {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(x.services[key].Keys())
}

// Objects calls visit for each object and name that was computed from it. visit must
// not call the index.
func (x *Index[N]) Objects(visit func(key federation.ObjectKey, name N)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for key, names := range x.objects {
		for name := range names.All() {
			visit(key, name)
		}
	}
}

// Services is Objects for services.
func (x *Index[N]) Services(visit func(key federation.ServiceKey, name N)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for key, names := range x.services {
		for name := range names.All() {
			visit(key, name)
		}
	}
}
