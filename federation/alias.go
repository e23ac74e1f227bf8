package federation

import "isthmus.dev/isthmus/internal/smallmap"

import "slices"

// An ExternalName (Kubernetes) that names a service is another name of that
// service, over any number of steps up to maxAliasSteps. It has nothing of its own:
// its callers are those of the target. Which services a reader sees may differ, so
// that aliases are followed when they are read and not when services are merged.

// maxAliasSteps bounds chains of ExternalNames.
const maxAliasSteps = 8

func aliasKey(target Hostname, key ServiceKey) string {
	return string(target) + nul + key.sortKey()
}

// indexExternalName moves the index by target from the old service to the new one.
func (x *servicesTxn) indexExternalName(key ServiceKey, old, now *Service) {
	before, after := old.externalName(), now.externalName()
	if before == after {
		return
	}
	if before != "" {
		x.aliases.Delete(aliasKey(before, key))
	}
	if after != "" {
		x.aliases.Set(aliasKey(after, key), key)
	}
}

func (s *Service) externalName() Hostname {
	if s == nil {
		return ""
	}
	return s.ExternalName
}

// AliasTarget is the hostname of the services for which an ExternalName stands,
// among those that match; false where there is none. Several services may have a
// hostname: that with the fewest steps to its target counts, then the order of keys,
// so that a proxy that sees more services never loses a target. Chains that lead back, or
// that are too long, lead nowhere.
func (r *Reader) AliasTarget(s *Service, match func(*Service) bool) (Hostname, bool) {
	hosts := []Hostname{s.ExternalName}
	for range maxAliasSteps {
		var next []Hostname
		for _, host := range hosts {
			for _, t := range r.ByHostname(host) {
				switch {
				case !match(t):
				case t.ExternalName == "":
					return host, true
				case !slices.Contains(next, t.ExternalName):
					next = append(next, t.ExternalName)
				}
			}
		}
		hosts = next
	}
	return "", false
}

// AliasesOf returns the services that match and are aliases of the hostname, directly
// or over others, those of fewer steps first and in the order of keys.
func (r *Reader) AliasesOf(host Hostname, match func(*Service) bool) []*Service {
	smallmap.Add(&r.deps.Hostnames, host)
	if r.snapshot.services.aliases.Len() == 0 {
		return nil
	}
	var found []*Service
	seen := map[Hostname]bool{host: true}
	for step, from := 0, []Hostname{host}; step < maxAliasSteps && len(from) > 0; step++ {
		var next []Hostname
		for _, target := range from {
			smallmap.Add(&r.deps.Hostnames, target)
			r.snapshot.services.aliases.WalkPrefix(string(target)+nul, func(_ string, key ServiceKey) bool {
				svc, _ := r.snapshot.Service(key)
				r.deps.noteService(key, ReasonSpec)
				if match(svc) && !seen[key.Hostname] {
					seen[key.Hostname] = true
					found, next = append(found, svc), append(next, key.Hostname)
				}
				return false
			})
		}
		from = next
	}
	return found
}

// Aliases are all other hostnames of the service, in every namespace: those that
// registries give it first, then ExternalNames.
func (s *Snapshot) Aliases(of *Service) []Hostname {
	anyone := func(*Service) bool { return true }
	r, names := s.Read(), slices.Clone(of.Aliases)
	for _, alias := range r.AliasesOf(of.Key.Hostname, anyone) {
		if host, is := r.AliasTarget(alias, anyone); is && host == of.Key.Hostname {
			names = append(names, alias.Key.Hostname)
		}
	}
	return names
}
