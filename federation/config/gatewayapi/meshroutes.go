package gatewayapi

import (
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/text"
)

// meshObjects are the VirtualServices that the route gives, as the oldest of those of its
// namespace for a Service.
func (v *routeView) meshObjects(r *federation.Reader) (all []*config.Object) {
	var seen []federation.ServiceKey
	for _, ref := range v.parents {
		service, is := v.serviceOf(ref)
		if !is || slices.Contains(seen, service) {
			continue
		}
		seen = append(seen, service)
		if m := meshFor(r, v, service); len(m.targets(v)) > 0 && !m.hasOlder(v.Object, meshKinds...) {
			all = append(all, m.object(v))
		}
	}
	slices.SortFunc(all, func(a, b *config.Object) int { return a.Key.Compare(b.Key) })
	return all
}

// object is the VirtualService, which the oldest route gives. One without a time of creation
// comes before others.
func (m *meshView) object(oldest *routeView) *config.Object {
	by := *oldest.Object
	spec := object{"hosts": []any{m.service.Hostname}, "gateways": []any{"mesh"}, "exportTo": everywhere}
	if by.Key.Namespace != m.service.Namespace {
		spec["exportTo"] = []any{"."}
		by.Created = time.Time{}
	}
	var requests, connections []*routeView
	for _, v := range m.used() {
		if v.isHTTP() {
			requests = append(requests, inMesh(v))
		} else {
			connections = append(connections, inMesh(v))
		}
	}
	if len(requests) > 0 {
		spec["http"] = m.http(requests)
	}
	if len(connections) > 0 {
		spec["tcp"] = m.tcp(connections)
	}
	return derived(&by, federation.VirtualServiceKind, nameStart+text.Label("mesh."+string(m.service.Hostname), 63-len(nameStart)), spec)
}

// http are the matches of all routes for requests, and what happens at ports without a route:
// their requests go to the service.
func (m *meshView) http(routes []*routeView) []any {
	var items []item
	var ports []uint16
	for _, v := range routes {
		for _, port := range m.targets(v) {
			t := &httpTranslation{reader: m.reader, route: v, status: &Status{}, faults: &faults{}}
			items = append(items, atPort(t.rules(v.http(), nil), port)...)
			ports = append(ports, port)
		}
	}
	slices.SortStableFunc(items, item.compare)
	all := []any{}
	for _, i := range items {
		all = append(all, i.fields)
	}
	for _, p := range m.ports {
		if !slices.Contains(ports, anyPort) && !slices.Contains(ports, p.Number) {
			to := object{"destination": backend{host: string(m.service.Hostname), port: int32(p.Number)}.destination()}
			all = append(all, object{"match": []any{object{"port": p.Number}}, "route": []any{to}})
		}
	}
	return all
}

// atPort has the matches be for a port of the service.
func atPort(items []item, port uint16) []item {
	if port == anyPort {
		return items
	}
	for _, i := range items {
		for _, match := range i.fields["match"].([]any) {
			match.(object)["port"] = port
		}
	}
	return items
}

// tcp are the routes for connections.
func (m *meshView) tcp(routes []*routeView) (all []any) {
	for _, v := range routes {
		for _, port := range m.targets(v) {
			route := object{"route": v.splits(m.reader, &faults{})}
			if port != anyPort {
				route["match"] = []any{object{"port": port}}
			}
			all = append(all, route)
		}
	}
	return all
}
