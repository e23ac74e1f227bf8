package derive

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// ByHost finds what a change affects of small values, each of which is computed from the
// services of one hostname and the objects about it, such as names of resources. That a
// value depends on these is not stored for each of them, so that many thousands take no
// memory for it; only what is read beside them is, and a change of that affects all.
type ByHost struct {
	kinds   map[federation.Kind]bool                  // of objects about hostnames that any value read
	reasons map[federation.Hostname]federation.Reason // for which services of the hostname were read, beside their specs
	rest    federation.Deps                           // whatever else any value read
	index   *Index[struct{}]                          // of rest
}

// NewByHost returns one that knows of no value.
func NewByHost() *ByHost {
	return &ByHost{kinds: map[federation.Kind]bool{}, reasons: map[federation.Hostname]federation.Reason{}, index: NewIndex[struct{}]()}
}

// Note notes what the value of the hostname was computed from, in place of what was
// noted before. It takes out of the notes what is of the hostname, and keeps none of them.
func (b *ByHost) Note(host federation.Hostname, s *federation.Snapshot, read federation.Deps) {
	read.Hosts.DeleteFunc(func(o federation.ObjectName, _ struct{}) bool {
		own := o.Name == string(host)
		if own {
			b.kinds[o.Kind] = true
		}
		return own
	})
	var reasons federation.Reason
	read.Services.DeleteFunc(func(key federation.ServiceKey, why federation.Reason) bool {
		if key.Hostname == host {
			reasons |= why &^ federation.ReasonSpec
		}
		return key.Hostname == host
	})
	delete(b.reasons, host)
	if reasons != 0 {
		b.reasons[host] = reasons
	}
	read.Hostnames.Delete(host)
	read.Objects.DeleteFunc(func(key federation.ObjectKey, _ struct{}) bool { return b.isOwn(key, host, s) })
	if all, grown := b.rest.With(read); grown {
		b.index.Replace(struct{}{}, b.rest, all)
		b.rest = all
	}
}

// isOwn reports whether the object is about the hostname, and of a kind of which values read
// what is about theirs.
func (b *ByHost) isOwn(key federation.ObjectKey, host federation.Hostname, s *federation.Snapshot) bool {
	if !b.kinds[key.Of()] {
		return false
	}
	o, exists := s.Object(key)
	return exists && slices.ContainsFunc(o.Names, func(name string) bool { return isAbout(name, string(host)) })
}

// Affected returns the hostnames whose values may be others after the changes, which lead
// from one snapshot to the other. A hostname may be in it several times.
func (b *ByHost) Affected(c federation.ChangeSet, before, after *federation.Snapshot) []federation.Hostname {
	var hosts []federation.Hostname
	for _, change := range c.Services {
		if host := change.Key.Hostname; change.Reasons&(federation.ReasonSpec|b.reasons[host]) != 0 {
			hosts = append(hosts, host)
		}
	}
	if len(b.index.Affected(c, after)) > 0 {
		return appendHosts(hosts, "*", after)
	}
	for _, change := range c.Objects {
		if !b.kinds[change.Key.Of()] {
			continue
		}
		for _, s := range [...]*federation.Snapshot{before, after} {
			o, exists := s.Object(change.Key)
			for i := 0; exists && i < len(o.Names); i++ {
				hosts = appendHosts(hosts, o.Names[i], after)
			}
		}
	}
	return hosts
}

// appendHosts adds the hostname, or those of services that the wildcard covers.
func appendHosts(hosts []federation.Hostname, name string, s *federation.Snapshot) []federation.Hostname {
	if !strings.HasPrefix(name, "*") {
		return append(hosts, federation.Hostname(name))
	}
	for svc := range s.Services().All() {
		if isAbout(name, string(svc.Key.Hostname)) {
			hosts = append(hosts, svc.Key.Hostname)
		}
	}
	return hosts
}
