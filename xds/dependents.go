package xds

import (
	"net/netip"

	"isthmus.dev/isthmus/federation"
)

// dependents finds the names that were built from a thing of the snapshot.
type dependents struct {
	services  *serviceIndex
	ports     nameSets[uint16]
	hostnames nameSets[federation.Hostname]
	addresses nameSets[federation.AddressKey]
	anywhere  nameSets[netip.Addr]
	clusters  nameSets[federation.ClusterID]
	objects   *objectIndex
	named     nameSets[federation.ObjectName]
	sets      nameSets[federation.ObjectSet]
	networks  nameSets[federation.NetworkID]
	settings  map[string]struct{}
	labels    map[string]struct{}
	specs     map[string]struct{} // that read the specs of all services
}

func newDependents() dependents {
	return dependents{
		services: &serviceIndex{names: map[federation.ServiceKey]map[string]federation.Reason{}}, ports: nameSets[uint16]{}, hostnames: nameSets[federation.Hostname]{},
		addresses: nameSets[federation.AddressKey]{}, anywhere: nameSets[netip.Addr]{}, clusters: nameSets[federation.ClusterID]{},
		objects: newObjectIndex(), named: nameSets[federation.ObjectName]{}, sets: nameSets[federation.ObjectSet]{},
		networks: nameSets[federation.NetworkID]{}, settings: map[string]struct{}{}, labels: map[string]struct{}{}, specs: map[string]struct{}{},
	}
}

type nameSets[K comparable] map[K]map[string]struct{}

func (s nameSets[K]) replace(name string, old, now map[K]bool) {
	for key := range old {
		if !now[key] {
			if delete(s[key], name); len(s[key]) == 0 {
				delete(s, key)
			}
		}
	}
	for key := range now {
		if !old[key] {
			if s[key] == nil {
				s[key] = map[string]struct{}{}
			}
			s[key][name] = struct{}{}
		}
	}
}

// replace makes the name depend on now and no more on old.
func (d *dependents) replace(name string, old, now federation.Deps) {
	d.services.replace(name, old.Services, now.Services)
	d.ports.replace(name, old.Ports, now.Ports)
	d.hostnames.replace(name, old.Hostnames, now.Hostnames)
	d.addresses.replace(name, old.Addresses, now.Addresses)
	d.anywhere.replace(name, old.Anywhere, now.Anywhere)
	d.clusters.replace(name, old.Clusters, now.Clusters)
	d.objects.replace(name, old.Objects, now.Objects)
	d.named.replace(name, old.Names, now.Names)
	d.sets.replace(name, old.Sets, now.Sets)
	d.networks.replace(name, old.Networks, now.Networks)
	if delete(d.settings, name); now.Settings {
		d.settings[name] = struct{}{}
	}
	delete(d.labels, name)
	if now.Labels {
		d.labels[name] = struct{}{}
	}
	if delete(d.specs, name); now.AllSpecs {
		d.specs[name] = struct{}{}
	}
}

// visit calls touch for every name that may look different after the changes;
// a name may come several times. A service that leaves a port is noted by name,
// one that comes to a port is found by the port.
func (d *dependents) visit(c federation.ChangeSet, s *federation.Snapshot, touch func(name string)) {
	for _, change := range c.Services {
		for name, reasons := range d.services.names[change.Key] {
			if reasons&change.Reasons != 0 {
				touch(name)
			}
		}
		if change.Reasons&federation.ReasonSpec != 0 {
			touchAll(d.hostnames[change.Key.Hostname], touch)
			touchAll(d.specs, touch)
		}
		if svc, ok := s.Service(change.Key); ok && change.Reasons&federation.ReasonSpec != 0 {
			d.visitSpec(svc, s, touch)
		}
	}
	for _, at := range c.Addresses {
		touchAll(d.addresses[at], touch)
		touchAll(d.anywhere[at.Addr], touch)
	}
	for _, id := range c.Clusters {
		touchAll(d.clusters[id], touch)
	}
	if len(c.Clusters) > 0 {
		touchAll(d.clusters[federation.AnyCluster], touch)
	}
	for _, change := range c.Objects {
		d.visitObject(change, s, touch)
	}
	for _, id := range c.Networks {
		touchAll(d.networks[id], touch)
	}
	if c.Settings {
		touchAll(d.settings, touch)
	}
	if c.Labels {
		touchAll(d.labels, touch)
	}
}

// visitSpec touches what the service, as it is now, comes to: its ports, and those
// for which it is another name.
func (d *dependents) visitSpec(svc *federation.Service, s *federation.Snapshot, touch func(name string)) {
	if len(d.ports) > 0 {
		for _, p := range svc.Ports {
			touchAll(d.ports[p.Number], touch)
		}
	}
	for _, target := range s.AliasTargets(svc) {
		for name, reasons := range d.services.names[target.Key] {
			if reasons&federation.ReasonSpec != 0 {
				touch(name)
			}
		}
	}
}

// visitObject touches what read the object, and what would have found it as it
// is now.
func (d *dependents) visitObject(c federation.ObjectChange, s *federation.Snapshot, touch func(name string)) {
	for _, name := range d.objects.built(c.Key) {
		touch(name)
	}
	o, ok := s.Object(c.Key)
	if !ok {
		return
	}
	for _, name := range o.Names {
		touchAll(d.named[federation.ObjectName{Kind: c.Key.Of(), Name: name}], touch)
	}
	for _, namespace := range [...]string{c.Key.Namespace, federation.AllNamespaces} {
		touchAll(d.sets[federation.ObjectSet{Kind: c.Key.Of(), Namespace: namespace}], touch)
	}
}

func touchAll(names map[string]struct{}, touch func(string)) {
	for name := range names {
		touch(name)
	}
}
