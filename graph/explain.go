package graph

import (
	"context"
	"math"
	"slices"
	"strconv"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Explain says which endpoints of a service a proxy sends to, and why.
func (q query) Explain(ctx context.Context, proxy, hostname string, port int, _ *string) (*model.Explanation, error) {
	if port < 1 || port > math.MaxUint16 {
		return nil, transport.BadArgument("port", "%d: a port is a number from 1 to %d", port, math.MaxUint16)
	}
	from, host := snapshot(ctx), lookedUp(hostname)
	if len(from.ByHostname(host)) == 0 {
		return nil, transport.Errorf(transport.NotFound, "there is no service %s", host)
	}
	var found fleet.Explained
	known := false
	if q.Explainer != nil {
		found, known = q.Explainer.Explain(from, connected(ctx), proxy, host, uint16(port))
	}
	if !known {
		return nil, transport.Errorf(transport.NotFound,
			"no proxy %q is connected, or several have that name: give its whole node ID, with CLUSTER/ before it where proxies of several clusters have the same", proxy)
	}
	all := found.Endpoints
	out := &model.Explanation{
		Service: service(from, found.Service), SnapshotVersion: strconv.FormatUint(from.Version(), 10),
		Endpoints: make([]model.EndpointExplanation, len(all)),
	}
	if latest := connected(ctx).ByProxy(found.Proxy); latest != nil {
		shown := model.NewProxy(from, latest)
		out.Proxy = &shown
	}
	services := servicesOfEndpoints(from, host)
	for i, e := range all {
		out.Endpoints[i] = model.NewEndpointExplanation(services[model.Endpoint{Source: e.Shard, Of: e.Endpoint}.Key()], e)
	}
	out.Findings = model.Findings(about(ctx, q.Config, host, all))
	return out, nil
}

// servicesOfEndpoints are the services of a hostname by the keys of their endpoints.
func servicesOfEndpoints(from *federation.Snapshot, host federation.Hostname) map[string]federation.ServiceKey {
	all := map[string]federation.ServiceKey{}
	for _, of := range from.ByHostname(host) {
		for endpoint := range (model.Service{From: from, Of: of}).Endpoints {
			if _, known := all[endpoint.Key()]; !known {
				all[endpoint.Key()] = of.Key
			}
		}
	}
	return all
}

// about are the findings of the services of a hostname, of the objects that name it,
// and of those that decide about its endpoints.
func about(ctx context.Context, of Config, host federation.Hostname, all []federation.Explanation) []apply.Finding {
	from := snapshot(ctx)
	var found []apply.Finding
	if of.ServiceFindings != nil {
		for _, s := range from.ByHostname(host) {
			found = append(found, of.ServiceFindings(from, s.Key)...)
		}
	}
	for _, o := range objectsAbout(from, of.Kinds, host, all) {
		if of.Findings != nil {
			found = append(found, of.Findings(from, connected(ctx), o.Key)...)
		}
		if of.NotHonoured == nil {
			continue
		}
		for _, n := range of.NotHonoured(from, o) {
			found = append(found, apply.Finding{
				Code: federation.CodeNotHonoured, Severity: apply.Warning, Message: n.Reason, Key: o.Key, Field: n.Field,
			})
		}
	}
	return distinct(found)
}

// objectsAbout are the objects that name the host, by wildcards too, the Gateways to
// which they are bound, and the causes of explanations of endpoints; each once.
func objectsAbout(from *federation.Snapshot, kinds []schema.Kind, host federation.Hostname,
	all []federation.Explanation,
) []*federation.Object {
	var found []*federation.Object
	known := map[federation.ObjectKey]bool{}
	add := func(o *federation.Object) {
		if o != nil && !known[o.Key] && !kind.Internal(o.Key.Of()) {
			known[o.Key], found = true, append(found, o)
		}
	}
	for _, name := range federation.Wildcards(host) {
		for _, kind := range kinds {
			for o := range from.Objects().Named(kind.Kind, name) {
				add(o)
			}
		}
	}
	for _, o := range found {
		for _, name := range o.Names {
			if key, is := kind.ParseGatewayName(name); is {
				bound, _ := from.Object(key)
				add(bound)
			}
		}
	}
	for _, e := range all {
		cause, _ := from.Object(e.Cause)
		add(cause)
	}
	return found
}

// distinct keeps the first of findings that say the same of the same object.
func distinct(all []apply.Finding) []apply.Finding {
	type said struct {
		code, message, field string
		object               federation.ObjectKey
	}
	known := map[said]bool{}
	return slices.DeleteFunc(all, func(f apply.Finding) bool {
		is := said{f.Code, f.Message, f.Field, f.Key}
		before := known[is]
		known[is] = true
		return before
	})
}
