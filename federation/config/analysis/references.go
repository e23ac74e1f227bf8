// Package analysis reports what objects refer to and a snapshot does not have, and what
// they say without effect on its services.
package analysis

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// The codes of findings about references are those of Istio's analysers, so that
// what people know of them holds here.
const (
	NotFoundReference = "IST0101" // a host, subset or gateway that does not exist
	ConflictingHosts  = "IST0109" // two VirtualServices name one host
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	Refusal Severity = "ERROR" // for which a request is refused
	Warning Severity = "WARNING"
	Info    Severity = "INFO"
)

// Finding is something that does not keep a request from being carried out.
type Finding struct {
	Code     string
	Severity Severity
	Message  string
	Key      federation.ObjectKey
	Field    string
	Related  []federation.ObjectKey // other objects that it involves
}

// References collects findings about one object.
type References struct {
	reader *federation.Reader
	object *federation.Object
	found  []Finding
}

// Of begins to look at an object of the snapshot that is read: with the objects of all clusters
// where it is for all proxies, else with those that may meet it.
func Of(o *federation.Object, in *federation.Reader) *References {
	return &References{reader: in.For(cmp.Or(o.Key.Cluster, federation.AnyCluster)), object: o}
}

// Findings are those that were added.
func (r *References) Findings() []Finding { return r.found }

// Add adds a warning.
func (r *References) Add(code, field, format string, args ...any) {
	r.find(Warning, code, field, format, args...)
}

func (r *References) find(severity Severity, code, field, format string, args ...any) {
	r.found = append(r.found, Finding{Code: code, Severity: severity, Key: r.object.Key, Field: field, Message: fmt.Sprintf(format, args...)})
}

// VirtualService reports destinations and gateways that do not exist, other
// VirtualServices of the same hosts, and routes that apply to no port.
func VirtualService(r *References, spec *networking.VirtualService) {
	r.dotted(spec.GetHosts())
	for i, route := range spec.GetHttp() {
		at := fmt.Sprintf("spec.http[%d]", i)
		for j, to := range route.GetRoute() {
			r.Destination(fmt.Sprintf("%s.route[%d].destination", at, j), to.GetDestination())
		}
		r.Destination(at+".mirror", route.GetMirror())
		for j, mirror := range route.GetMirrors() {
			r.Destination(fmt.Sprintf("%s.mirrors[%d].destination", at, j), mirror.GetDestination())
		}
	}
	for i, route := range spec.GetTls() {
		for j, to := range route.GetRoute() {
			r.Destination(fmt.Sprintf("spec.tls[%d].route[%d].destination", i, j), to.GetDestination())
		}
	}
	for i, route := range spec.GetTcp() {
		for j, to := range route.GetRoute() {
			r.Destination(fmt.Sprintf("spec.tcp[%d].route[%d].destination", i, j), to.GetDestination())
		}
	}
	mesh := len(spec.GetGateways()) == 0
	for i, name := range spec.GetGateways() {
		if name == "mesh" {
			mesh = true
			continue
		}
		r.gateway(fmt.Sprintf("spec.gateways[%d]", i), name)
	}
	if mesh {
		r.rivals()
		r.httpRoutes(spec)
		r.connectionRoutes(spec)
	}
}

// Hosts yields the full names of the hosts to which routes of a VirtualService of the namespace lead, copies included.
// What a delegate leads to is not among them.
func Hosts(namespace string, spec *networking.VirtualService) iter.Seq[federation.Hostname] {
	return func(yield func(federation.Hostname) bool) {
		leads := func(to *networking.Destination) bool {
			return to == nil || yield(federation.ResolveHost(to.GetHost(), namespace))
		}
		for _, route := range spec.GetHttp() {
			for _, to := range route.GetRoute() {
				if !leads(to.GetDestination()) {
					return
				}
			}
			for _, mirror := range route.GetMirrors() {
				if !leads(mirror.GetDestination()) {
					return
				}
			}
			if !leads(route.GetMirror()) {
				return
			}
		}
		for _, to := range connections(spec) {
			if !leads(to.GetDestination()) {
				return
			}
		}
	}
}

func connections(spec *networking.VirtualService) (all []*networking.RouteDestination) {
	for _, route := range spec.GetTls() {
		all = append(all, route.GetRoute()...)
	}
	for _, route := range spec.GetTcp() {
		all = append(all, route.GetRoute()...)
	}
	return all
}

// Destination finds a host or subset that does not exist.
func (r *References) Destination(field string, to *networking.Destination) {
	if to == nil || !r.Host(field+".host", to.GetHost()) || to.GetSubset() == "" {
		return
	}
	host := federation.ResolveHost(to.GetHost(), r.object.Key.Namespace)
	for _, name := range federation.Wildcards(host) {
		for o := range r.reader.Objects().Named(federation.DestinationRuleKind, name) {
			rule, _ := o.Spec.(*networking.DestinationRule)
			for _, subset := range rule.GetSubsets() {
				if subset.GetName() == to.GetSubset() && r.meets(o) {
					return
				}
			}
		}
	}
	r.Add(NotFoundReference, field+".subset", "no DestinationRule has the subset %q of %s: requests to it get an error", to.GetSubset(), host)
}

// Host reports whether a service of that name exists, and finds it missing if not.
func (r *References) Host(field, name string) bool {
	host := federation.ResolveHost(name, r.object.Key.Namespace)
	if suffix, wild := strings.CutPrefix(string(host), "*"); wild {
		for svc := range r.reader.Specs() {
			if strings.HasSuffix(string(svc.Key.Hostname), suffix) {
				return true
			}
		}
	} else if len(r.reader.ByHostname(host)) > 0 {
		return true
	}
	r.Add(NotFoundReference, field, "there is no service %s%s", host, withoutDot(string(host)))
	return false
}

// withoutDot is what to do about a name that ends with a dot, as no service's does; empty for other names.
func withoutDot(name string) string {
	if !strings.HasSuffix(name, ".") {
		return ""
	}
	return ": no service has a name with a dot at the end; remove it"
}

// dotted reports hosts of a VirtualService that can be no service's.
func (r *References) dotted(hosts []string) {
	for i, host := range hosts {
		if why := withoutDot(host); why != "" {
			r.Add(NotFoundReference, fmt.Sprintf("spec.hosts[%d]", i), "%s%s", host, why)
		}
	}
}

func (r *References) gateway(field, name string) {
	namespace, short, qualified := strings.Cut(name, "/")
	if !qualified {
		namespace, short = r.object.Key.Namespace, name
	}
	kind := federation.GatewayKind
	key := federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: namespace, Name: short}
	if _, ok := r.reader.Object(key); !ok {
		r.Add(NotFoundReference, field, "there is no %s", key.Title())
	}
}

// meets reports whether the two objects may concern the same proxy.
func (r *References) meets(o *federation.Object) bool {
	own := r.object.Key.Cluster
	return own == "" || o.Key.Cluster == "" || o.Key.Cluster == own
}

// rivals are other VirtualServices that sidecars use for one of the hosts: only
// the oldest counts.
func (r *References) rivals() {
	for i, name := range r.object.Names {
		if strings.Contains(name, ":") {
			continue
		}
		for o := range r.reader.Objects().Named(r.object.Key.Of(), name) {
			if o.Key != r.object.Key && r.meets(o) && usedBySidecars(o) && o.Older(r.object) {
				r.Add(ConflictingHosts, fmt.Sprintf("spec.hosts[%d]", i), "%s has the host %s, too, and is older: sidecars use that one",
					o.Key.Title(), name)
			}
		}
	}
}

func usedBySidecars(o *federation.Object) bool {
	spec, _ := o.Spec.(*networking.VirtualService)
	if len(spec.GetGateways()) == 0 {
		return true
	}
	for _, name := range spec.GetGateways() {
		if name == "mesh" {
			return true
		}
	}
	return false
}
