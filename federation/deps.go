package federation

import (
	"net/netip"

	"isthmus.dev/isthmus/internal/smallmap"
)

// Deps are the things of a snapshot that a resource was made from: what must
// change before it can.
type Deps struct {
	Services  smallmap.Map[ServiceKey, Reason] // with the reasons that matter
	Ports     smallmap.Set[uint16]             // the set of services on that port
	VIPs      smallmap.Set[netip.Addr]         // the set of services at that VIP
	Hostnames smallmap.Set[Hostname]           // the set of services of that hostname, and of its other names
	Addresses smallmap.Set[AddressKey]
	Anywhere  smallmap.Set[netip.Addr] // addresses in whatever network
	Clusters  smallmap.Set[ClusterID]
	Objects   smallmap.Set[ObjectKey]
	// Names, Hosts and Sets describe objects that may come: of a kind under a name,
	// of a kind about a hostname, and of a kind in a namespace.
	Names    smallmap.Set[ObjectName]
	Hosts    smallmap.Set[ObjectName]
	Sets     smallmap.Set[ObjectSet]
	Networks smallmap.Set[NetworkID]
	KeySets  smallmap.Set[KeySource]
	Problems smallmap.Set[ProblemSubject]
	Settings bool
	Labels   bool // the set of proxies' labels that decide about objects
	AllSpecs bool // the specs of all services, of those that may come too
}

// Restart begins another noted reading of the same snapshot. What r.Deps returned is over
// with it: the notes that come take its memory.
func Restart(r *Reader) {
	d := &r.deps
	r.deps = Deps{
		Services: d.Services.Emptied(), Ports: d.Ports.Emptied(), VIPs: d.VIPs.Emptied(), Hostnames: d.Hostnames.Emptied(),
		Addresses: d.Addresses.Emptied(), Anywhere: d.Anywhere.Emptied(), Clusters: d.Clusters.Emptied(), Objects: d.Objects.Emptied(),
		Names: d.Names.Emptied(), Hosts: d.Hosts.Emptied(), Sets: d.Sets.Emptied(), Networks: d.Networks.Emptied(), KeySets: d.KeySets.Emptied(),
		Problems: d.Problems.Emptied(),
	}
}

func (d *Deps) noteService(key ServiceKey, reasons Reason) {
	known, has := d.Services.Get(key)
	if !has || known|reasons != known {
		d.Services.Put(key, known|reasons)
	}
}

// With is what either has. grown reports whether it is more than d; else it is d itself.
func (d Deps) With(more Deps) (all Deps, grown bool) {
	for key, reasons := range more.Services.All() {
		if known, _ := d.Services.Get(key); known|reasons != known {
			if !grown {
				d.Services, grown = d.Services.Clone(), true
			}
			d.Services.Put(key, known|reasons)
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
	grown = unite(&d.Problems, more.Problems) || grown
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
func unite[K comparable](set *smallmap.Set[K], more smallmap.Set[K]) (grown bool) {
	for key := range more.All() {
		if !set.Has(key) {
			if !grown {
				*set, grown = set.Clone(), true
			}
			smallmap.Add(set, key)
		}
	}
	return grown
}
