package attach

import (
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// others are the clusters that are there.
type others struct {
	snapshot *federation.Snapshot
	uids     map[federation.ClusterID]string
}

func othersIn(s *federation.Snapshot) others {
	o := others{snapshot: s, uids: map[federation.ClusterID]string{}}
	for c := range s.Clusters() {
		if c.Identity.UID != "" {
			o.uids[c.ID] = c.Identity.UID
		}
	}
	return o
}

// overlap finds an address of another cluster on the network that the reported
// one has, or may give, too.
func (o others) overlap(id federation.ClusterID, network federation.NetworkID, r *Report) (at netip.Addr, of federation.ClusterID, found bool) {
	has := map[netip.Addr]bool{}
	for _, a := range r.Addresses {
		has[a] = true
	}
	for svc := range o.snapshot.Services() {
		for _, group := range svc.Endpoints {
			if group.Shard.Provider == federation.External {
				continue
			}
			for i := range group.Endpoints {
				e := &group.Endpoints[i]
				ip, isIP := e.Address.IP()
				if !isIP || e.Network != network || group.ClusterOf(e) == id {
					continue
				}
				if has[ip] || slices.ContainsFunc(r.Prefixes, func(p netip.Prefix) bool { return p.Contains(ip) }) {
					return ip, group.ClusterOf(e), true
				}
			}
		}
	}
	return netip.Addr{}, "", false
}
