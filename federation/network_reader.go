package federation

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/noted"
)

// The kinds of what networks are made from.
var (
	readObjects = &noted.Kind[*Object]{Name: "object", Equal: same[*Object], About: networkOfObject}
	readService = &noted.Kind[*Service]{Name: "service", Group: firstField, Equal: same[*Service]} // of a hostname
	readVIPs    = &noted.Kind[struct{}]{Name: "vip", Group: func(key string) string { return key[:vipBytes] }, Equal: same[struct{}]}
	readMembers = &noted.Kind[struct{}]{Name: "member", Group: firstField, Equal: same[struct{}], About: networkOfGroup}
	readHomes   = &noted.Kind[NetworkID]{Name: "home", Equal: same[NetworkID]}
	readClaims  = &noted.Kind[claim]{Name: "claim", Group: firstField, Equal: same[claim], About: networkOfGroup}
	readNames   = &noted.Kind[[]netip.Addr]{Name: "name", Equal: slices.Equal[[]netip.Addr]}
	readVerdict = &noted.Kind[Verdict]{Name: "verdict", Group: gatewayOfVerdict, Equal: Verdict.equal}
	readPolicy  = &noted.Kind[*Settings]{Name: "policy", Equal: (*Settings).equal}
)

func same[V comparable](a, b V) bool { return a == b }

// firstField is the first name in a key, with the NUL that ends it.
func firstField(key string) string { return key[:strings.Index(key, nul)+1] }

func networkOfGroup(group string) string { return strings.TrimSuffix(group, nul) }

func networkOfObject(key string) string {
	if of, err := ParseObjectKey(key); err == nil && of.Of() == NetworkKind {
		return of.Name
	}
	return ""
}

// networkSources are all that networks are made from. Reading one of them notes it.
type networkSources struct {
	objects  noted.View[*Object]
	services noted.View[*Service]
	vips     noted.View[struct{}]
	members  noted.View[struct{}]
	homes    noted.View[NetworkID]
	claims   noted.View[claim]
	resolved noted.View[[]netip.Addr]
	verdicts noted.View[Verdict]
	settings noted.Value[*Settings]
}

func (d *draft) networkSources() *networkSources {
	s, x := d.base, &d.networks
	return &networkSources{
		objects:  noted.ViewOf(readObjects, s.objects.byKey, d.objects.byKey.Commit()),
		services: noted.ViewOf(readService, s.services.byKey, d.services.Commit()),
		vips:     noted.ViewOf(readVIPs, s.services.vips, d.services.vips.Commit()),
		members:  noted.ViewOf(readMembers, s.networks.members, x.members.Commit()),
		homes:    noted.ViewOf(readHomes, s.networks.homes, x.homes.Commit()),
		claims:   noted.ViewOf(readClaims, s.networks.claims, x.claims.Commit()),
		resolved: noted.ViewOf(readNames, s.networks.resolved, x.resolved.Commit()),
		verdicts: noted.ViewOf(readVerdict, s.networks.verdicts, x.verdicts.Commit()),
		settings: noted.ValueOf(readPolicy, &s.settings, &d.settings),
	}
}

// affected are the networks that must be made again since the snapshot before.
func (s *networkSources) affected(notes noted.Notes) map[NetworkID]bool {
	found := map[NetworkID]bool{}
	mark := func(id string) { found[NetworkID(id)] = true }
	s.objects.Affected(notes, mark)
	s.services.Affected(notes, mark)
	s.vips.Affected(notes, mark)
	s.members.Affected(notes, mark)
	s.homes.Affected(notes, mark)
	s.claims.Affected(notes, mark)
	s.resolved.Affected(notes, mark)
	s.verdicts.Affected(notes, mark)
	s.settings.Affected(notes, mark)
	return found
}

// networkReader reads what one network is made from.
type networkReader struct {
	noted.Reader
	from *networkSources
}

func (r *networkReader) object(key ObjectKey) (*Object, bool) {
	return r.from.objects.Get(&r.Reader, key.SortKey())
}

// clusters are those in the network, sorted.
func (r *networkReader) clusters(id NetworkID) (found []ClusterID) {
	for key := range r.from.members.In(&r.Reader, string(id)+nul) {
		found = append(found, ClusterID(key[len(id)+1:]))
	}
	return found
}

// home is the network of the cluster.
func (r *networkReader) home(of ClusterID) NetworkID {
	id, _ := r.from.homes.Get(&r.Reader, string(of))
	return cmp.Or(id, DefaultNetwork)
}

// claims are the services whose labels make them entries of the network.
func (r *networkReader) claims(id NetworkID) (found []claim) {
	for _, c := range r.from.claims.In(&r.Reader, string(id)+nul) {
		found = append(found, c)
	}
	return found
}

func (r *networkReader) service(key ServiceKey) (*Service, bool) {
	return r.from.services.Get(&r.Reader, key.sortKey())
}

func (r *networkReader) byHostname(host Hostname) (found []*Service) {
	for _, svc := range r.from.services.In(&r.Reader, string(host)+nul) {
		found = append(found, svc)
	}
	return found
}

// ownerAt is the service of which the address is the VIP.
func (r *networkReader) ownerAt(vip netip.Addr) (owner ServiceKey, found bool) {
	for key := range r.from.vips.In(&r.Reader, vipPrefix(vip)) {
		return serviceKeyOf(key[vipBytes:]), true
	}
	return owner, false
}

// addresses are those to which the name resolves.
func (r *networkReader) addresses(name Hostname) []netip.Addr {
	found, _ := r.from.resolved.Get(&r.Reader, string(name))
	return found
}

func (r *networkReader) verdicts(gateway netip.AddrPort) (found []Verdict) {
	for _, v := range r.from.verdicts.In(&r.Reader, verdictKey(gateway, "")) {
		found = append(found, v)
	}
	return found
}

func (r *networkReader) policy() AddressPolicy { return r.from.settings.Get(&r.Reader).Addresses }
