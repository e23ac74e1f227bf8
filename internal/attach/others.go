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

// overlapping is how addresses of two clusters on one network are alike.
type overlapping int

const (
	apart overlapping = iota
	sameAddress
	inRange // one has an address that the other gives to its pods
)

// overlap finds an address of another cluster on the network that the reported
// one has, or may give, too.
func (o others) overlap(id federation.ClusterID, network federation.NetworkID, r *Report) (at netip.Addr,
	of federation.ClusterID, worst overlapping,
) {
	has := map[netip.Addr]bool{}
	for _, a := range r.Addresses {
		has[a] = true
	}
	for svc := range o.snapshot.Services().All() {
		for _, group := range svc.Endpoints {
			if group.Shard.Provider.OfConfiguration() {
				continue
			}
			for i := range group.Endpoints {
				e := &group.Endpoints[i]
				ip, isIP := e.Address.IP()
				other := group.ClusterOf(e)
				if !isIP || e.Network != network || other == id || r.UID != "" && o.uids[other] == r.UID {
					continue
				}
				if slices.ContainsFunc(r.Prefixes, func(p netip.Prefix) bool { return p.Contains(ip) }) {
					return ip, other, inRange
				}
				if has[ip] && worst == apart {
					at, of, worst = ip, other, sameAddress
				}
			}
		}
	}
	return at, of, worst
}
