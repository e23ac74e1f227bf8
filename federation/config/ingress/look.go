package ingress

import (
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/translated"
)

// clusterLook is a look at the Ingresses of one cluster. What it reads is noted.
type clusterLook struct {
	cluster  federation.ClusterID
	r        *federation.Reader
	services *federation.Reader
	settings settings
}

func (b *translations) look(of federation.ClusterID) clusterLook {
	l := clusterLook{cluster: of, r: b.read.Read().For(of), services: b.services.Read()}
	if o, exists := l.r.Object(settingsKey); exists {
		l.settings, _ = o.Spec.(settings)
	}
	return l
}

// The names of Ingresses as objects: what they take part in.
func clusterName(of federation.ClusterID) string { return "cluster " + string(of) }
func hostName(host string) string                { return "host " + host }
func tlsName(host string) string                 { return "tls " + host }
func secretName(namespace, s string) string      { return "secret " + namespace + "/" + s }

func (e *entry) names() []string {
	names := []string{clusterName(e.cluster)}
	for _, host := range e.hosts {
		names = append(names, hostName(host))
	}
	for _, c := range e.certificates {
		names = append(names, secretName(e.namespace, c.secret))
		for _, host := range c.hosts {
			names = append(names, tlsName(host))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (e *entry) key() federation.ObjectKey {
	key := federation.IngressKind.Key(e.namespace, e.name)
	key.Cluster = e.cluster
	return key
}

// entryOf is the Ingress of an object.
func entryOf(o *federation.Object) *entry {
	e, _ := o.Spec.(*entry)
	return e
}

// class finds the controller of an IngressClass.
func (l clusterLook) class(name string) (controller string, exists bool) {
	key := federation.IngressClassKind.Key("", name)
	key.Cluster = l.cluster
	o, exists := l.r.Object(key)
	if exists {
		controller, _ = o.Spec.(string)
	}
	return controller, exists
}

func (l clusterLook) serves(e *entry) bool {
	served, _ := l.settings.serves(e.class, l.class)
	return served
}

// named are the Ingresses of the name that are served, the oldest first. exists reports whether
// there are any, served or not.
func (l clusterLook) named(name string) (all []*entry, exists bool) {
	for o := range l.r.Objects().Named(federation.IngressKind, name) {
		exists = true
		if e := entryOf(o); l.serves(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, (*entry).compareAge)
	return all, exists
}

// portsOf are the ports of a service of the mesh.
func (l clusterLook) portsOf(namespace, name string) ([]federation.ServicePort, bool) {
	svc, exists := l.services.Spec(federation.ServiceKey{Hostname: federation.ResolveHost(name, namespace), Namespace: namespace})
	if !exists {
		return nil, false
	}
	return svc.Ports, true
}

// owner is who has the certificate for a host.
type owner struct {
	by  *entry
	key secretKey
}

// owner is the oldest Ingress with a certificate for the host, and its Secret.
func (l clusterLook) owner(host string) (o owner) {
	all, _ := l.named(tlsName(host))
	if len(all) == 0 {
		return o
	}
	o.by = all[0]
	i := slices.IndexFunc(o.by.certificates, func(c certificate) bool { return slices.Contains(c.hosts, host) })
	o.key = secretKey{o.by.namespace, o.by.certificates[i].secret}
	return o
}

// ofEntry are the problems of an Ingress itself.
func (l clusterLook) ofEntry(u unit) (problems []config.Problem, exists bool) {
	o, exists := l.r.Object((&entry{namespace: u.namespace, name: u.name, cluster: u.cluster}).key())
	if !exists {
		return nil, false
	}
	e := entryOf(o)
	served, unknown := l.settings.serves(e.class, l.class)
	switch {
	case unknown != "":
		return []config.Problem{e.problem(codeClass, "spec.ingressClassName", "the cluster has no IngressClass %s; the Ingress has no effect",
			federation.Quote(unknown))}, true
	case !served:
		return nil, true
	}
	problems = slices.Clone(e.problems)
	for _, c := range e.certificates {
		for _, host := range c.hosts {
			if owner := l.owner(host); owner.by != e && owner.key != (secretKey{e.namespace, c.secret}) {
				problems = append(problems, e.problem(codeTLSHost, c.field+".hosts", "connections for %s get the certificate of %s, which is older",
					host, owner.by.title()))
			}
		}
	}
	return problems, true
}

// ofSecret is the Gateway of the hosts whose certificate is in the Secret.
func (l clusterLook) ofSecret(key secretKey) (m made, exists bool) {
	all, exists := l.named(secretName(key.namespace, key.name))
	owned := map[string]struct{}{}
	for _, e := range all {
		for _, c := range e.certificates {
			for _, host := range c.hosts {
				if c.secret == key.name && l.owner(host).key == key {
					owned[host] = struct{}{}
				}
			}
		}
	}
	if len(owned) > 0 {
		m.object = encrypted(l.settings, l.cluster, key, slices.Sorted(maps.Keys(owned)), all[0])
	}
	return m, exists
}

// gateways are those at which the routes of a host are: that for plain text, and those with a
// certificate for the host.
func (l clusterLook) gateways(host string, ingresses []*entry) []string {
	found := map[string]struct{}{}
	add := func(at string) {
		if o := l.owner(at); o.by != nil {
			found[o.key.namespace+"/"+o.key.gateway()] = struct{}{}
		}
	}
	add(host)
	for _, e := range ingresses {
		for _, c := range e.certificates {
			for _, at := range c.hosts {
				if translated.Covers(at, host) || translated.Covers(host, at) {
					add(at)
				}
			}
		}
	}
	return append([]string{l.settings.namespace + "/" + httpGateway}, slices.Sorted(maps.Keys(found))...)
}
