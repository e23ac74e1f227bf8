package federation

import (
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/internal/smallmap"
)

// indexVIPs moves the index by VIP from the old service to the new one.
func (x *servicesTxn) indexVIPs(key ServiceKey, old, now *Service) {
	before, after := old.SingleVIPs(), now.SingleVIPs()
	for _, vip := range before {
		if !slices.Contains(after, vip) {
			x.vips.Delete(vipKey(vip, key))
		}
	}
	for _, vip := range after {
		if !slices.Contains(before, vip) {
			x.vips.Set(vipKey(vip, key), struct{}{})
		}
	}
}

// SingleVIPs are the VIPs of all clusters that are one address, and the automatic
// ones, in no order.
func (s *Service) SingleVIPs() []netip.Addr {
	if s == nil {
		return nil
	}
	var vips []netip.Addr
	for _, prefixes := range s.ClusterVIPs.All() {
		for _, p := range prefixes {
			if vip := p.Addr().Unmap(); p.IsSingleIP() && !slices.Contains(vips, vip) {
				vips = append(vips, vip)
			}
		}
	}
	if s.HasAutomaticVIPs() {
		automatic := s.Key.AutomaticVIPs()
		vips = append(vips, automatic[:]...)
	}
	return vips
}

// SelectAtVIP returns the services that have the VIP in any cluster, or as an
// automatic one, and match,
// in the order of their keys. Ranges are not looked into. match must look at specs
// only.
func (r *Reader) SelectAtVIP(vip netip.Addr, match func(*Service) bool) []*Service {
	smallmap.Add(&r.deps.VIPs, vip)
	var found []*Service
	r.snapshot.services.vips.WalkPrefix(vipPrefix(vip), func(k string, _ struct{}) bool {
		key := serviceKeyOf(k[vipBytes:])
		if svc, ok := r.snapshot.Service(key); ok && match(svc) {
			r.deps.noteService(key, ReasonSpec)
			found = append(found, svc)
		}
		return false
	})
	return found
}
