package ingress

import (
	"fmt"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/text"
)

var (
	ingressKind = federation.Kind{Group: networkingv1.GroupName, Name: "Ingress"}
	classKind   = federation.Kind{Group: networkingv1.GroupName, Name: "IngressClass"}
)

// unit is what one object is translated for. A change of an Ingress translates again only
// the units that it takes part in.
type unit struct {
	cluster         federation.ClusterID
	what            string // one of those below
	namespace, name string
}

// What units are.
const (
	ofCluster = "http"  // plain text
	ofSecret  = "tls"   // of namespace and name
	ofHost    = "host"  // the name is the host
	ofEntry   = "entry" // no object; problems of the Ingress itself
)

// translations has all Ingresses that were read, and what they were translated to.
type translations struct {
	settings settings
	services lookup
	clusters map[federation.ClusterID]*clusterIngresses
	dirty    map[unit]struct{} // to be translated again
	given    map[unit]*config.Object
	problems map[unit][]config.Problem
	worse    bool                // the problems may be others
	having   map[string]int      // how many clusters have Ingresses of a host
	shared   map[string]struct{} // hosts of several clusters
}

func newTranslations() *translations {
	return &translations{
		clusters: map[federation.ClusterID]*clusterIngresses{}, dirty: map[unit]struct{}{}, given: map[unit]*config.Object{},
		problems: map[unit][]config.Problem{},
		having:   map[string]int{}, shared: map[string]struct{}{},
	}
}

func (b *translations) clusterIngresses(id federation.ClusterID) *clusterIngresses {
	s := b.clusters[id]
	if s == nil {
		s = &clusterIngresses{
			id: id, ingresses: map[at]*kept{}, controllers: map[string]string{},
			hosts: index[string]{}, tls: index[string]{}, secrets: index[secretKey]{}, services: index[at]{},
		}
		b.clusters[id] = s
	}
	return s
}

// take takes up objects that were read: Ingresses and IngressClasses.
func (b *translations) take(events []config.Event) {
	reclassed := map[*clusterIngresses]bool{}
	for _, e := range events {
		key := e.Key()
		s := b.clusterIngresses(key.Cluster)
		switch key.Of() {
		case classKind:
			s.takeClass(key.Name, e.New)
			reclassed[s] = true
		case ingressKind:
			b.takeIngress(s, at{key.Namespace, key.Name}, e.New)
		}
	}
	for s := range reclassed {
		b.judge(s)
	}
}

func (b *translations) takeIngress(s *clusterIngresses, key at, o *config.Object) {
	if old := s.ingresses[key]; old != nil {
		b.serve(s, old, false)
		delete(s.ingresses, key)
	}
	b.touch(unit{s.id, ofEntry, key.namespace, key.name})
	if o == nil {
		return
	}
	e, in := read(o)
	now := &kept{entry: e, class: &networkingv1.Ingress{}}
	now.class.Annotations, now.class.Spec.IngressClassName = in.Annotations, in.Spec.IngressClassName
	s.ingresses[key] = now
	b.judgeOne(s, now)
}

// configure takes up settings. It reports whether they changed.
func (b *translations) configure(now settings) bool {
	if b.settings == now {
		return false
	}
	b.settings = now
	for _, s := range b.clusters {
		b.judge(s)
	}
	for u := range b.given {
		b.touch(u)
	}
	return true
}

// judge decides again which Ingresses are served.
func (b *translations) judge(s *clusterIngresses) {
	for _, k := range s.ingresses {
		b.judgeOne(s, k)
	}
}

func (b *translations) judgeOne(s *clusterIngresses, k *kept) {
	b.touch(unit{s.id, ofEntry, k.namespace, k.name})
	if served, _ := b.settings.serves(k.class, s.controllers); served != k.served {
		b.serve(s, k, served)
	}
}

// serve begins or ends to serve the Ingress.
func (b *translations) serve(s *clusterIngresses, k *kept, served bool) {
	if k.served == served {
		return
	}
	k.served = served
	if !served {
		b.touchAll(s, k.entry) // also what shares hosts with it
	}
	e := k.entry
	b.date(s, e, served)
	for _, host := range e.hosts {
		had := len(s.hosts[host]) > 0
		s.hosts.set(host, e, served)
		b.count(host, had, len(s.hosts[host]) > 0)
	}
	for _, name := range e.services() {
		s.services.set(at{e.namespace, name}, e, served)
	}
	for _, c := range e.certificates {
		s.secrets.set(secretKey{e.namespace, c.secret}, e, served)
		for _, host := range c.hosts {
			s.tls.set(host, e, served)
		}
	}
	if served {
		b.touchAll(s, e)
	}
}

// date finds the oldest Ingress again where that may be another one.
func (b *translations) date(s *clusterIngresses, e *entry, served bool) {
	switch {
	case served && (s.oldest == nil || e.compareAge(s.oldest) < 0):
		s.oldest = e
	case !served && s.oldest == e:
		s.oldest = nil
		for _, k := range s.ingresses {
			if k.served && (s.oldest == nil || k.compareAge(s.oldest) < 0) {
				s.oldest = k.entry
			}
		}
	default:
		return
	}
	b.touch(unit{s.id, ofCluster, "", ""})
}

// count counts the clusters with Ingresses of the host.
func (b *translations) count(host string, had, has bool) {
	switch {
	case had == has || host == anyHost:
		return
	case has:
		b.having[host]++
	default:
		b.having[host]--
	}
	_, was := b.shared[host]
	switch n := b.having[host]; {
	case n > 1 && !was:
		b.shared[host], b.worse = struct{}{}, true
	case n < 2 && was:
		delete(b.shared, host)
		b.worse = true
	case n == 0:
		delete(b.having, host)
	}
}

func (b *translations) touch(u unit) { b.dirty[u] = struct{}{} }

// touchAll touches what the Ingress takes part in, and what depends on who has the
// certificate for its hosts.
func (b *translations) touchAll(s *clusterIngresses, e *entry) {
	b.touchHosts(s, e)
	for _, c := range e.certificates {
		b.touch(unit{s.id, ofSecret, e.namespace, c.secret})
		for _, host := range c.hosts {
			b.touch(unit{s.id, ofHost, "", host})
			for other := range s.tls[host] {
				b.touchHosts(s, other)
				b.touch(unit{s.id, ofEntry, other.namespace, other.name})
				for _, c := range other.certificates {
					b.touch(unit{s.id, ofSecret, other.namespace, c.secret})
				}
			}
		}
	}
}

func (b *translations) touchHosts(s *clusterIngresses, e *entry) {
	for _, host := range e.hosts {
		b.touch(unit{s.id, ofHost, "", host})
	}
}

// serviceChanged has Ingresses of every cluster look at the service again.
func (b *translations) serviceChanged(namespace, name string) {
	for _, s := range b.clusters {
		for e := range s.services[at{namespace, name}] {
			b.touchHosts(s, e)
		}
	}
}

// everyServiceChanged has all Ingresses look at their services again.
func (b *translations) everyServiceChanged() {
	for _, s := range b.clusters {
		for host := range s.hosts {
			b.touch(unit{s.id, ofHost, "", host})
		}
	}
}

func (b *translations) complain(u unit, problems []config.Problem) {
	if slices.Equal(b.problems[u], problems) {
		return
	}
	b.worse = true
	if len(problems) == 0 {
		delete(b.problems, u)
	} else {
		b.problems[u] = problems
	}
}

// wrong are all problems, sorted.
func (b *translations) wrong() (all []config.Problem) {
	for _, problems := range b.problems {
		all = append(all, problems...)
	}
	all = append(all, b.sharedHosts()...)
	slices.SortFunc(all, config.Problem.Compare)
	return slices.Compact(all)
}

// shownHosts bounds the hosts that one problem names.
const shownHosts = 10

// sharedHosts is the problem that Ingresses of several clusters have the same hosts.
func (b *translations) sharedHosts() []config.Problem {
	if len(b.shared) == 0 {
		return nil
	}
	names, more := text.First(slices.Sorted(maps.Keys(b.shared)), shownHosts)
	return []config.Problem{{Code: codeHostShared, Object: "Ingresses", Message: fmt.Sprintf(
		"Ingresses of several clusters have the hosts %q%s: the gateways of each cluster use those of their own cluster", names, more)}}
}
