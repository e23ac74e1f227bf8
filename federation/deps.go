package federation

import (
	"maps"
	"net/netip"
)

// Deps are the things of a snapshot that a resource was made from: what must
// change before it can.
type Deps struct {
	Services  map[ServiceKey]Reason // with the reasons that matter
	Ports     map[uint16]bool       // the set of services on that port
	VIPs      map[netip.Addr]bool   // the set of services at that VIP
	Hostnames map[Hostname]bool     // the set of services of that hostname, and of its other names
	Addresses map[AddressKey]bool
	Anywhere  map[netip.Addr]bool // addresses in whatever network
	Clusters  map[ClusterID]bool
	Objects   map[ObjectKey]bool
	// Names, Hosts and Sets describe objects that may come: of a kind under a name,
	// of a kind about a hostname, and of a kind in a namespace.
	Names    map[ObjectName]bool
	Hosts    map[ObjectName]bool
	Sets     map[ObjectSet]bool
	Networks map[NetworkID]bool
	KeySets  map[KeySource]bool
	Settings bool
	Labels   bool // the set of proxies' labels that decide about objects
	AllSpecs bool // the specs of all services, of those that may come too
}

// Restart begins another noted reading of the same snapshot. What r.Deps returned is over
// with it: the notes that come take its memory.
func Restart(r *Reader) {
	d := &r.deps
	r.deps = Deps{
		Services: emptied(d.Services), Ports: emptied(d.Ports), VIPs: emptied(d.VIPs), Hostnames: emptied(d.Hostnames), Addresses: emptied(d.Addresses),
		Anywhere: emptied(d.Anywhere), Clusters: emptied(d.Clusters), Objects: emptied(d.Objects), Names: emptied(d.Names), Hosts: emptied(d.Hosts),
		Sets: emptied(d.Sets), Networks: emptied(d.Networks), KeySets: emptied(d.KeySets),
	}
}

// emptied is the map without what it has; not one that became large, since emptying it
// costs as much again and again.
func emptied[K comparable, V any](m map[K]V) map[K]V {
	const large = 32
	if len(m) > large {
		return nil
	}
	clear(m)
	return m
}

func (d *Deps) noteService(key ServiceKey, reasons Reason) {
	if d.Services == nil {
		d.Services = map[ServiceKey]Reason{}
	}
	d.Services[key] |= reasons
}

// With is what either has. grown reports whether it is more than d; else it is d itself.
func (d Deps) With(more Deps) (all Deps, grown bool) {
	for key, reasons := range more.Services {
		if d.Services[key]|reasons != d.Services[key] {
			if !grown {
				d.Services, grown = cloned(d.Services), true
			}
			d.Services[key] |= reasons
		}
	}
	grown = unite(&d.Ports, more.Ports) || grown
	grown = unite(&d.VIPs, more.VIPs) || grown
	grown = unite(&d.Hostnames, more.Hostnames) || grown
	grown = unite(&d.Addresses, more.Addresses) || grown
	grown = unite(&d.Anywhere, more.Anywhere) || grown
	grown = unite(&d.Clusters, more.Clusters) || grown
	grown = unite(&d.Objects, more.Objects) || grown
	grown = unite(&d.Names, more.Names) || grown
	grown = unite(&d.Hosts, more.Hosts) || grown
	grown = unite(&d.Sets, more.Sets) || grown
	grown = unite(&d.Networks, more.Networks) || grown
	grown = unite(&d.KeySets, more.KeySets) || grown
	grown = raise(&d.Settings, more.Settings) || grown
	grown = raise(&d.Labels, more.Labels) || grown
	grown = raise(&d.AllSpecs, more.AllSpecs) || grown
	return d, grown
}

// raise is unite for a flag.
func raise(flag *bool, more bool) (grown bool) {
	grown = more && !*flag
	*flag = *flag || more
	return grown
}

// unite puts what more has into a copy of the set, if that is anything.
func unite[K comparable](set *map[K]bool, more map[K]bool) (grown bool) {
	for key := range more {
		if !(*set)[key] {
			if !grown {
				*set, grown = cloned(*set), true
			}
			(*set)[key] = true
		}
	}
	return grown
}

func cloned[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
