package gatewayapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/translated"
	"isthmus.dev/isthmus/internal/text"
)

const nameStart = "gateway-api-" // of the names of all objects that are given, but of certificates of clients

// made is what an object was translated to.
type made struct {
	objects []*config.Object
	status  Status
	hosts   []string // for which a Gateway has routes, sorted
}

// translators are by the kind of an object. Those of routes are not listed.
var translators = federation.Rows[func(*federation.Reader, federation.ObjectKey) made]{
	federation.GatewayAPI.GatewayClass:     statusAlone(statusOfClass),
	federation.GatewayAPI.ListenerSet:      statusAlone(statusOfSet),
	federation.GatewayAPI.Gateway:          translateGateway,
	federation.GatewayAPI.BackendTLSPolicy: translatePolicy,
}

// statusAlone is for kinds of which nothing is made.
func statusAlone(of func(*federation.Reader, federation.ObjectKey) Status) func(*federation.Reader, federation.ObjectKey) made {
	return func(r *federation.Reader, key federation.ObjectKey) made { return made{status: of(r, key)} }
}

// translate translates a Gateway with its routes, or computes the status of a route.
func translate(r *federation.Reader, key federation.ObjectKey) made {
	r = r.For(key.Cluster)
	if of := translators[key.Of()]; of != nil {
		return of(r, key)
	}
	o, exists := r.Object(key)
	if !exists || o.Key != key {
		return made{}
	}
	v := readRoute(o)
	if v == nil {
		return made{}
	}
	m := made{status: statusOf(r, v), objects: v.meshObjects(r)}
	for _, o := range m.objects {
		m.status.Made = append(m.status.Made, o.Key)
	}
	return m
}

func translateGateway(r *federation.Reader, key federation.ObjectKey) made {
	if g := view(r, key); g != nil && g.Key == key {
		return g.translate(r)
	}
	return made{}
}

func translatePolicy(r *federation.Reader, key federation.ObjectKey) made {
	if p := readPolicy(r, key); p != nil {
		return p.translate(r)
	}
	return made{}
}

// slot has the routes that a listener has for a host.
type slot struct {
	at   int // of the listeners
	host string
}

// routesAt are the routes of each host of each listener, and how many routes each listener has.
func (g *gatewayView) routesAt(r *federation.Reader) (slots map[slot][]*routeView, attached []int) {
	slots, attached = map[slot][]*routeView{}, make([]int, len(g.listeners))
	for _, v := range g.candidates(r) {
		for _, a := range v.attachments(g) {
			attached[a.at]++
			for _, host := range a.hosts {
				if !belongsElsewhere(g, g.listeners[a.at], host) {
					slots[slot{a.at, host}] = append(slots[slot{a.at, host}], v)
				}
			}
		}
	}
	return slots, attached
}

// candidates are the routes that name the Gateway or a ListenerSet of it.
func (g *gatewayView) candidates(r *federation.Reader) (all []*routeView) {
	names := []string{kind.GatewayName(g.Key.Namespace, g.Key.Name)}
	for _, set := range g.sets {
		names = append(names, kind.GatewayName(set.Key.Namespace, set.Key.Name))
	}
	seen := map[federation.ObjectKey]bool{}
	for _, of := range routeKinds {
		for _, name := range names {
			for o := range r.Objects().Named(of.Kind, name) {
				if o.Key.Cluster != g.Key.Cluster || seen[o.Key] {
					continue
				}
				seen[o.Key] = true
				if v := readRoute(o); v != nil {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

func (g *gatewayView) translate(r *federation.Reader) (m made) {
	slots, attached := g.routesAt(r)
	for i, l := range g.listeners {
		if !l.listens() {
			continue
		}
		m.objects = append(m.objects, g.server(l, l.host))
		if at := (slot{i, l.host}); l.routesHTTP() && slots[at] == nil && isNarrower(g, l) {
			slots[at] = []*routeView{} // its requests are not those of the wider listener
		}
	}
	for at, routes := range slots {
		if l := g.listeners[at.at]; l.listens() {
			routes = g.usableRoutes(at, routes)
			if l.serverHost(at.host) != l.host {
				m.objects = append(m.objects, g.server(l, at.host))
			}
			m.objects = append(m.objects, g.routes(r, l, at.host, routes))
			if at.host != anyHost {
				m.hosts = append(m.hosts, at.host)
			}
		}
	}
	if g.certificate != nil {
		m.objects = append(m.objects, g.certificate.object(g.Object))
	}
	slices.Sort(m.hosts)
	m.hosts = slices.Compact(m.hosts)
	slices.SortFunc(m.objects, func(a, b *config.Object) int { return a.Key.Compare(b.Key) })
	for _, o := range m.objects {
		if !kind.Internal(o.Key.Of()) {
			g.status.Made = append(g.status.Made, o.Key)
		}
	}
	g.finish(attached)
	m.status = g.status
	return m
}

// usableRoutes leaves the routes of a host that can be used together: HTTPRoutes or GRPCRoutes,
// whichever has the oldest, and of routes of connections the oldest one.
func (g *gatewayView) usableRoutes(at slot, routes []*routeView) (used []*routeView) {
	slices.SortFunc(routes, func(a, b *routeView) int { return a.CompareAge(b.Object) })
	for _, v := range routes {
		if len(used) == 0 || v.isHTTP() && v.Key.Kind == used[0].Key.Kind {
			used = append(used, v)
			continue
		}
		g.status.notes = append(g.status.notes, config.Problem{
			Code: codeTaken, Object: v.Key.String(),
			Field: "spec.parentRefs", Message: fmt.Sprintf(
				"for host %s of the listener %s of the Gateway %s the route has no effect: %s, which is older, has it",
				at.host, g.listeners[at.at].Name, g.Key.Namespace+"/"+g.Key.Name, used[0].Key.Title()),
		})
	}
	return used
}

// belongsElsewhere reports whether a listener of the same port is more specific for the host:
// requests for the host are those of that listener alone.
func belongsElsewhere(g *gatewayView, l *listener, host string) bool {
	return slices.ContainsFunc(g.listeners, func(o *listener) bool {
		return o != l && o.sharesPort(l) && o.listens() && o.host != l.host &&
			translated.Covers(l.host, o.host) && translated.Covers(o.host, host)
	})
}

// isNarrower reports whether another listener of the port is for the host of this one, too.
func isNarrower(g *gatewayView, l *listener) bool {
	return slices.ContainsFunc(g.listeners, func(o *listener) bool {
		return o != l && o.sharesPort(l) && o.listens() && o.host != l.host && translated.Covers(o.host, l.host)
	})
}

// serverHost is the host of the server that has the routes of a host: where TLS ends and
// connections are routed, the server name decides, and each host has a server.
func (l *listener) serverHost(host string) string {
	if l.Protocol == gateway.TLSProtocolType && !l.passes() {
		return host
	}
	return l.host
}

// server is the Gateway of a host of a listener. Only proxies of the namespace of the Gateway
// have it.
func (g *gatewayView) server(l *listener, host string) *config.Object {
	server := object{"hosts": []any{host}, "port": object{"name": "http", "number": l.Port, "protocol": "HTTP"}}
	switch {
	case l.Protocol == gateway.TCPProtocolType, l.Protocol == gateway.UDPProtocolType:
		server["port"] = object{"name": strings.ToLower(string(l.Protocol)), "number": l.Port, "protocol": l.Protocol}
	case l.passes():
		server["port"] = object{"name": "tls", "number": l.Port, "protocol": "TLS"}
		server["tls"] = object{"mode": "PASSTHROUGH"}
	case l.Protocol != gateway.HTTPProtocolType:
		server["port"] = object{"name": strings.ToLower(string(l.Protocol)), "number": l.Port, "protocol": l.Protocol}
		server["tls"] = l.serverTLS()
	}
	o := g.object(federation.GatewayKind, g.serverName(l, host), object{"selector": object{nameLabel: g.Key.Name}, "servers": []any{server}})
	o.Origin, o.Credentials = l.origin(), federation.CredentialGrant{To: g.Key.Namespace, Only: true}
	if l.from != "" && l.from != g.Key.Namespace {
		o.Credentials.From = l.from
	}
	return o
}

// serverTLS is how a listener ends TLS, and with which certificates.
func (l *listener) serverTLS() object {
	if l.mode == modeOfMesh {
		return l.asOptionsSay(object{})
	}
	tls := object{"mode": "SIMPLE", "credentialName": l.names[0]}
	if len(l.names) > 1 {
		tls = object{"mode": "SIMPLE", "credentialNames": l.names}
	}
	switch {
	case l.roots != "":
		tls["mode"], tls["caCertCredentialName"] = "MUTUAL", l.roots
	case l.inline != "":
		tls["mode"], tls["caCertificates"] = "MUTUAL", l.inline
	}
	if l.insecure {
		tls["mode"], tls["insecureSkipVerify"] = "OPTIONAL_MUTUAL", true
	}
	return l.asOptionsSay(tls)
}

func (g *gatewayView) serverName(l *listener, host string) string {
	name := g.Key.Name + "." + string(l.Name)
	if l.of != g.Key {
		name = g.Key.Name + "." + l.of.Namespace + "." + l.of.Name + "." + string(l.Name)
	}
	name = nameStart + text.Label(name, 63-len(nameStart))
	if host == l.host {
		return name
	}
	return name + "." + hostName(host)
}

// everywhere exports routes whatever the mesh's default is: their parents say whose they are.
var everywhere = []any{"*"}

// routes is the VirtualService of one host of a listener.
func (g *gatewayView) routes(r *federation.Reader, l *listener, host string, routes []*routeView) *config.Object {
	spec := object{
		"hosts": []any{host}, "gateways": []any{g.Key.Namespace + "/" + g.serverName(l, l.serverHost(host))}, "exportTo": everywhere,
	}
	switch {
	case l.routesHTTP():
		spec["http"] = httpRoutes(r, l, routes)
	case l.passes():
		spec["tls"] = []any{object{"match": []any{object{"sniHosts": []any{host}}}, "route": g.passed(r, l, routes[0])}}
	default:
		spec["tcp"] = []any{object{"route": routes[0].splits(r, &faults{})}}
	}
	o := g.object(federation.VirtualServiceKind, g.serverName(l, l.host)+"."+hostName(host), spec)
	if len(routes) == 1 {
		o.Origin = federation.Origin{Key: routes[0].Key}
		return o
	}
	o.Origin = l.origin()
	for _, v := range routes {
		o.Origin.Parts = append(o.Origin.Parts, v.Key)
	}
	slices.SortFunc(o.Origin.Parts, federation.ObjectKey.Compare)
	o.Origin.Parts = slices.Compact(o.Origin.Parts)
	return o
}

// origin is the listener in the object that has it.
func (l *listener) origin() federation.Origin { return federation.Origin{Key: l.of, Field: l.field} }

func (l *listener) routesHTTP() bool {
	return l.Protocol == gateway.HTTPProtocolType || l.Protocol == gateway.HTTPSProtocolType
}

// httpRoutes are the matches of all routes, in their order.
func httpRoutes(r *federation.Reader, l *listener, routes []*routeView) []any {
	var items []item
	for _, v := range routes {
		t := &httpTranslation{reader: r, route: v, status: &Status{}, faults: &faults{}}
		items = append(items, t.rules(v.http(), l)...)
	}
	slices.SortStableFunc(items, item.compare)
	all := make([]any, 0, len(items))
	for _, i := range items {
		all = append(all, i.fields)
	}
	if len(all) == 0 {
		all = append(all, object{"directResponse": object{"status": http.StatusNotFound}})
	}
	return all
}

// hostName is the part of a name that is for a host.
func hostName(host string) string {
	if host == anyHost {
		return "any"
	}
	if below, wild := strings.CutPrefix(host, "*."); wild {
		return "wildcard." + text.Label(below, 63-len("any"))
	}
	return "host." + text.Label(host, 63)
}

// object is one that is given, of the age of the Gateway.
func (g *gatewayView) object(of federation.Kind, name string, spec object) *config.Object {
	return derived(g.Object, of, name, spec)
}

// derived is an object that is given for another one, of its namespace, cluster and age.
func derived(by *federation.Object, of federation.Kind, name string, spec object) *config.Object {
	key := federation.ObjectKey{Group: of.Group, Kind: of.Name, Namespace: by.Key.Namespace, Name: name, Cluster: by.Key.Cluster}
	metadata := object{"name": name, "namespace": key.Namespace}
	if !by.Created.IsZero() {
		metadata["creationTimestamp"] = by.Created.Format(time.RFC3339)
	}
	apiVersion := of.Group + "/v1"
	manifest, err := json.Marshal(object{"apiVersion": apiVersion, "kind": key.Kind, "metadata": metadata, "spec": spec})
	if err != nil {
		panic(fmt.Sprintf("writing %s: %v", key, err)) // texts and numbers
	}
	return &config.Object{Key: key, APIVersion: apiVersion, Manifest: manifest, Origin: federation.Origin{Key: by.Key}}
}

// Translate is what all objects of the Gateway API in the snapshot mean, and what is wrong
// with them. A Source gives the same.
func Translate(s *federation.Snapshot) (objects []*config.Object, problems []config.Problem) {
	b := newTranslations(nil)
	for _, e := range b.take(s) {
		objects = append(objects, e.New)
	}
	return objects, b.set.Problems()
}
