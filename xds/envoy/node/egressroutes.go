package node

import (
	"iter"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// throughRoutes is the port of hosts to which routes of imported VirtualServices lead and that the Sidecar itself does not
// import: nothing but these routes leads to them (G100, ADR 230).
const throughRoutes = "-"

// elsewhereName and a namespace find the VirtualServices of the namespace that may lead to services of others.
const elsewhereName = "elsewhere:"

// withDestinations is the egress of a Sidecar for proxies of the namespace, with the destinations of the VirtualServices
// that it imports.
func withDestinations(egress, namespace string, r *federation.Reader) string {
	if egress == "" {
		return ""
	}
	d := destinations{seen: Facet{Scope: ScopeImported, Namespace: namespace, Egress: egress}, reader: r}
	for o, spec := range d.rules() {
		d.add(o.Key.Namespace, spec)
		for _, route := range spec.GetHttp() {
			if to := route.GetDelegate(); to != nil {
				d.delegate(o.Key.Namespace, to)
			}
		}
	}
	if len(d.found) == 0 {
		return egress
	}
	return egress + ";" + throughRoutes + ":" + egressList(d.found)
}

// destinations are those of the VirtualServices that a Sidecar imports.
type destinations struct {
	seen   Facet // what the Sidecar imports
	reader *federation.Reader
	found  []string // NAMESPACE/HOST
}

// rules yields the VirtualServices that may lead to what is not imported; some of them several times. All services are
// imported with */*.
func (d *destinations) rules() iter.Seq2[*federation.Object, *networking.VirtualService] {
	return func(yield func(*federation.Object, *networking.VirtualService) bool) {
		for want := range d.wants() {
			for o := range d.named(want) {
				spec, ok := o.Spec.(*networking.VirtualService)
				if ok && d.imports(o, spec, want) && !yield(o, spec) {
					return
				}
			}
		}
	}
}

// wants yields what the Sidecar includes: NAMESPACE/HOST.
func (d *destinations) wants() iter.Seq[string] {
	return func(yield func(string) bool) {
		for list := range strings.SplitSeq(d.seen.Egress, ";") {
			_, hosts, _ := portOfList(list)
			for want := range strings.SplitSeq(hosts, ",") {
				if !strings.HasPrefix(want, "~") && !yield(want) {
					return
				}
			}
		}
	}
}

// named yields the VirtualServices that what the Sidecar includes may mean. Of those of a whole namespace only the ones
// that lead out of it are read.
func (d *destinations) named(want string) iter.Seq[*federation.Object] {
	namespace, host, _ := strings.Cut(want, "/")
	objects := d.reader.Objects()
	switch wild := strings.HasPrefix(host, "*"); {
	case !wild:
		return objects.For(federation.VirtualServiceKind, federation.Hostname(host))
	case namespace == "*" && host == "*":
		return func(func(*federation.Object) bool) {}
	case namespace == "*":
		return objects.Of(federation.VirtualServiceKind)
	case host == "*":
		return objects.Named(federation.VirtualServiceKind, elsewhereName+namespace)
	}
	return objects.In(federation.VirtualServiceKind, namespace)
}

// imports reports whether the Sidecar's proxies have the VirtualService, which was found by what the Sidecar includes. One
// for a wildcard is for a host below it that is included, too.
func (d *destinations) imports(o *federation.Object, spec *networking.VirtualService, want string) bool {
	_, included, _ := strings.Cut(want, "/")
	return virtualservice.ForMesh(spec.GetGateways()) && virtualservice.VisibleFrom(d.seen.Namespace, o, spec, d.reader) &&
		slices.ContainsFunc(spec.GetHosts(), func(name string) bool {
			host := federation.ResolveHost(name, o.Key.Namespace)
			if resource.Covers(string(host), included) {
				host = federation.Hostname(included)
			}
			return d.seen.ImportsRule(o.Key.Namespace, host)
		})
}

func (d *destinations) delegate(namespace string, to *networking.Delegate) {
	if to.GetNamespace() != "" {
		namespace = to.GetNamespace()
	}
	if o, exists := d.reader.Object(federation.VirtualServiceKind.Key(namespace, to.GetName())); exists {
		if spec, ok := o.Spec.(*networking.VirtualService); ok {
			d.add(namespace, spec)
		}
	}
}

// add adds what routes of a VirtualService of the namespace lead to, as far as the Sidecar says nothing about it.
func (d *destinations) add(namespace string, spec *networking.VirtualService) {
	for host := range analysis.Hosts(namespace, spec) {
		of, named := host.Namespace()
		if !named {
			of = "*"
		}
		if named && !d.seen.mentions(of, host) || !named && !d.isKnown(host) {
			d.found = append(d.found, of+"/"+string(host))
		}
	}
}

// isKnown reports whether the Sidecar says something about a service of the host: with one of another namespace, what
// it imports could lose the name.
func (d *destinations) isKnown(host federation.Hostname) bool {
	return slices.ContainsFunc(d.reader.ByHostname(host), func(s *federation.Service) bool {
		return s.VisibleFrom(d.seen.Namespace) && d.seen.mentions(s.Key.Namespace, host)
	})
}
