package ingress

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// change translates what was touched, and returns what that changes.
func (b *translations) change(revision int64) []config.Event {
	var events []config.Event
	replaced := map[federation.ObjectKey]*config.Object{}
	for u := range b.dirty {
		old := b.given[u]
		now := b.contained(u, old)
		b.complain(u, now.problems)
		switch {
		case old == nil && now.object == nil, old != nil && now.object != nil && old.Key == now.object.Key && old.Alike(now.object):
			continue
		case now.object == nil:
			delete(b.given, u)
		default:
			now.object.Revision = revision
			b.given[u] = now.object
		}
		if old != nil && (now.object == nil || old.Key != now.object.Key) {
			replaced[old.Key] = old
			old = nil
		}
		if now.object != nil {
			events = append(events, config.Event{Old: old, New: now.object})
		}
	}
	clear(b.dirty)
	for i, e := range events {
		if old := replaced[e.New.Key]; old != nil {
			events[i].Old = old
			delete(replaced, e.New.Key)
		}
	}
	for _, old := range replaced {
		events = append(events, config.Event{Old: old})
	}
	slices.SortFunc(events, config.Event.Compare)
	return events
}

// everything is all that is given.
func (b *translations) everything() []config.Event {
	events := make([]config.Event, 0, len(b.given))
	for _, o := range b.given {
		events = append(events, config.Event{New: o})
	}
	slices.SortFunc(events, config.Event.Compare)
	return events
}

// contained is translate. After a panic, what was given stays, and the others go on.
func (b *translations) contained(u unit, old *config.Object) (m made) {
	defer func() {
		if cause := recover(); cause != nil {
			m = made{object: old, problems: []config.Problem{{
				Code: federation.CodeHubFault, Object: fmt.Sprintf("Ingresses of cluster %s, %s %s", u.cluster, u.what, at{u.namespace, u.name}),
				Message: fmt.Sprintf("the hub cannot translate them, which is a fault of the hub; what was translated before stays (%.200v)", cause),
			}}}
		}
	}()
	return b.translate(u)
}

func (b *translations) translate(u unit) made {
	s := b.clusterIngresses(u.cluster)
	switch u.what {
	case ofCluster:
		if s.oldest != nil {
			return made{object: plainText(b.settings, s.id, s.oldest)}
		}
	case ofSecret:
		return b.ofSecret(s, secretKey{u.namespace, u.name})
	case ofHost:
		if all := s.hosts.byAge(u.name); len(all) > 0 {
			return routes(s.id, u.name, all, b.gateways(s, u.name, all), b.services)
		}
	case ofEntry:
		if k := s.ingresses[at{u.namespace, u.name}]; k != nil {
			return made{problems: b.ofEntry(s, k)}
		}
	}
	return made{}
}

// ofEntry are the problems of an Ingress itself.
func (b *translations) ofEntry(s *clusterIngresses, k *kept) []config.Problem {
	_, unknown := b.settings.serves(k.class, s.controllers)
	switch {
	case unknown != "":
		return []config.Problem{k.problem(codeClass, "spec.ingressClassName", "the cluster has no IngressClass %s; the Ingress has no effect",
			federation.Quote(unknown))}
	case !k.served:
		return nil
	}
	problems := slices.Clone(k.problems)
	for _, c := range k.certificates {
		for _, host := range c.hosts {
			if owner := s.owner(host); owner.by != k.entry && owner.key != (secretKey{k.namespace, c.secret}) {
				problems = append(problems, k.problem(codeTLSHost, c.field+".hosts", "connections for %s get the certificate of %s, which is older",
					host, owner.by.title()))
			}
		}
	}
	return problems
}

// ofSecret is the Gateway of the hosts whose certificate is in the Secret.
func (b *translations) ofSecret(s *clusterIngresses, key secretKey) made {
	owned := map[string]struct{}{}
	for e := range s.secrets[key] {
		for _, c := range e.certificates {
			for _, host := range c.hosts {
				if c.secret == key.name && s.owner(host).key == key {
					owned[host] = struct{}{}
				}
			}
		}
	}
	if len(owned) == 0 {
		return made{}
	}
	return made{object: encrypted(b.settings, s.id, key, slices.Sorted(maps.Keys(owned)), s.secrets.oldest(key))}
}

// gateways are those at which the routes of a host are: that for plain text, and those with a
// certificate for the host.
func (b *translations) gateways(s *clusterIngresses, host string, ingresses []*entry) []string {
	found := map[string]struct{}{}
	add := func(at string) {
		if o := s.owner(at); o.by != nil {
			found[o.key.namespace+"/"+o.key.gateway()] = struct{}{}
		}
	}
	add(host)
	for _, e := range ingresses {
		for _, c := range e.certificates {
			for _, at := range c.hosts {
				if covers(at, host) || covers(host, at) {
					add(at)
				}
			}
		}
	}
	return append([]string{b.settings.namespace + "/" + httpGateway}, slices.Sorted(maps.Keys(found))...)
}
