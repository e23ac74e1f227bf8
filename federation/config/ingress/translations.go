package ingress

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/translated"
)

var settingsKey = federation.ObjectKey{Group: networkingv1.GroupName, Kind: "Settings"}

// unit is what one object is translated for.
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

func (u unit) compare(o unit) int {
	return cmp.Or(cmp.Compare(u.cluster, o.cluster), cmp.Compare(u.what, o.what), cmp.Compare(u.namespace, o.namespace),
		cmp.Compare(u.name, o.name))
}

func (u unit) title() string {
	title := fmt.Sprintf("Ingresses of cluster %s, %s", u.cluster, u.what)
	switch {
	case u.name == "":
		return title
	case u.namespace == "":
		return title + " " + u.name
	}
	return title + " " + u.namespace + "/" + u.name
}

// words are those of problems and of the log.
var words = translated.Words{
	Object: "Ingress of a cluster", All: "Ingresses",
	Shared: "Ingresses of several clusters have the hosts %q%s: the gateways of each cluster use those of their own cluster",
}

// translations has all Ingresses that were read, and what they were translated to. Ingresses,
// their classes and the settings are objects of a snapshot of its own: units note what they read
// of it, as of the snapshot with the services.
type translations struct {
	settings settings
	read     *federation.Snapshot
	services *federation.Snapshot
	set      *translated.Set[unit]
	dirty    map[unit]struct{} // to be translated again
	// oldest has each cluster with Ingresses, and the oldest one that is served; nil: none is.
	oldest map[federation.ClusterID]*entry
}

func newTranslations() *translations {
	return &translations{
		read: federation.Empty(), services: federation.Empty(), set: translated.New(words, unit.title), dirty: map[unit]struct{}{},
		oldest: map[federation.ClusterID]*entry{},
	}
}

// take handles objects that were read: Ingresses and IngressClasses.
func (b *translations) take(events []config.Event) {
	now := map[federation.ObjectKey]*federation.Object{}
	for _, e := range events {
		o := &federation.Object{Key: e.Key()}
		switch {
		case e.New == nil:
			o = nil
		case o.Key.Of() == federation.IngressClassKind:
			var class networkingv1.IngressClass
			if json.Unmarshal(e.New.Manifest, &class) != nil {
				continue
			}
			o.Spec, o.Digest = class.Spec.Controller, class.Spec.Controller
		case o.Key.Of() == federation.IngressKind:
			of := read(e.New)
			digest := sha256.Sum256(e.New.Manifest)
			o.Spec, o.Digest, o.Names = of, string(digest[:]), of.names()
			b.touchAll(of)
		default:
			continue
		}
		now[e.Key()] = o
	}
	b.edit(now)
}

// configure applies settings. It reports whether they changed.
func (b *translations) configure(now settings) bool {
	if b.settings == now {
		return false
	}
	b.settings = now
	b.edit(map[federation.ObjectKey]*federation.Object{settingsKey: {Key: settingsKey, Spec: now, Digest: fmt.Sprint(now)}})
	return true
}

// edit replaces objects; nil is none.
func (b *translations) edit(now map[federation.ObjectKey]*federation.Object) {
	if len(now) == 0 {
		return
	}
	e := federation.Edit{Source: federation.ShardKey{Provider: federation.Operator}}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{}
	for key, o := range now {
		if o == nil {
			e.Objects.Gone = append(e.Objects.Gone, key)
		} else {
			e.Objects.Set[key] = o
		}
	}
	var changes federation.ChangeSet
	b.read, changes = federation.Next(b.read, e)
	b.touch(b.set.Affected(changes, b.read)...)
}

// follow applies the services of the snapshot.
func (b *translations) follow(services *federation.Snapshot) {
	changes := services.ChangesSince(b.services.Version())
	b.services = services
	b.touch(b.set.Affected(changes, services)...)
}

func (b *translations) touch(units ...unit) {
	for _, u := range units {
		b.dirty[u] = struct{}{}
	}
}

// touchAll touches what an Ingress that was read takes part in. What it took part in before has
// read it.
func (b *translations) touchAll(e *entry) {
	b.touch(unit{e.cluster, ofEntry, e.namespace, e.name})
	if b.datesPlainText(e) {
		b.touch(unit{cluster: e.cluster, what: ofCluster})
	}
	for _, host := range e.hosts {
		b.touch(unit{e.cluster, ofHost, "", host})
	}
	for _, c := range e.certificates {
		b.touch(unit{e.cluster, ofSecret, e.namespace, c.secret})
	}
}

// datesPlainText reports whether the Gateway for plain text may change with an Ingress that was read
// and is not noted for it. Where classes or settings change, the Gateway has noted them.
func (b *translations) datesPlainText(e *entry) bool {
	oldest, exists := b.oldest[e.cluster]
	if !exists {
		return true
	}
	return (oldest == nil || e.compareAge(oldest) < 0) && b.look(e.cluster).serves(e)
}

// change translates what was touched, and returns what that changes.
func (b *translations) change(revision int64) []config.Event {
	dirty := slices.SortedFunc(maps.Keys(b.dirty), unit.compare)
	clear(b.dirty)
	events := b.set.Update(dirty, b.translate)
	for _, e := range events {
		if e.New != nil {
			e.New.Revision = revision
		}
	}
	return events
}

// translate translates one unit. It exists as long as an Ingress takes part in it that was read,
// whether that is served or not.
func (b *translations) translate(u unit, into *translated.Unit) (exists bool) {
	l := b.look(u.cluster)
	defer func() { into.Read, _ = l.r.Deps().With(l.services.Deps()) }()
	var m made
	switch u.what {
	case ofCluster:
		m, exists = b.plainText(l)
	case ofSecret:
		m, exists = l.ofSecret(secretKey{u.namespace, u.name})
	case ofHost:
		var all []*entry
		all, exists = l.named(hostName(u.name))
		if len(all) > 0 {
			m = routes(u.cluster, u.name, all, l.gateways(u.name, all), l.portsOf)
			if u.name != anyHost {
				into.Cluster, into.Hosts = u.cluster, []string{u.name}
			}
		}
	case ofEntry:
		m.problems, exists = l.ofEntry(u)
	}
	into.Problems = m.problems
	if m.object != nil {
		into.Objects = []*config.Object{m.object}
	}
	return exists
}

// plainText is the Gateway for plain text, which the oldest Ingress that is served dates. It notes
// that Ingress, or any one if none is served, and not the others: datesPlainText says which of those
// that are read have it looked at again.
func (b *translations) plainText(l clusterLook) (m made, exists bool) {
	_ = slices.Collect(l.r.Objects().Of(federation.IngressClassKind)) // notes all: which Ingresses are served may change with each
	var oldest, noted *entry
	for o := range b.read.Objects().Named(federation.IngressKind, clusterName(l.cluster)) {
		noted = entryOf(o)
		if l.serves(noted) && (oldest == nil || noted.compareAge(oldest) < 0) {
			oldest = noted
		}
	}
	if noted == nil {
		delete(b.oldest, l.cluster)
		return made{}, false
	}
	b.oldest[l.cluster] = oldest
	if oldest == nil {
		l.r.Object(noted.key())
		return made{}, true
	}
	l.r.Object(oldest.key())
	return made{object: plainText(l.settings, l.cluster, oldest)}, true
}
