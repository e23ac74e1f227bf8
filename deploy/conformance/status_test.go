package conformance

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// status writes into the cluster what the hub reports about objects of the Gateway API, and
// the addresses of the proxies.
type status struct {
	*rig
	proxies  *gateways
	findings map[string][]finding // by object
}

// finding is a problem of an object, as the hub reports it.
type finding struct{ Code, Object, Field, Message string }

func (s *status) sync(ctx context.Context) error {
	if err := s.ask(); err != nil {
		return err
	}
	for _, write := range []func(context.Context) error{s.class, s.gateways, s.routes} {
		if err := write(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ask reads the findings of the hub.
func (s *status) ask() error {
	var answer struct{ ConfigSources []struct{ Trouble []finding } }
	if err := s.hub.Query(`{configSources {trouble {code object field message}}}`, nil, &answer); err != nil {
		return err
	}
	s.findings = map[string][]finding{}
	for _, source := range answer.ConfigSources {
		for _, f := range source.Trouble {
			s.findings[f.Object] = append(s.findings[f.Object], f)
		}
	}
	return nil
}

// of are the findings of an object.
func (s *status) of(kind string, o client.Object) []finding {
	return s.findings[fmt.Sprintf("%s.%s %s/%s of cluster c1", kind, gateway.GroupName, o.GetNamespace(), o.GetName())]
}

func (s *status) class(ctx context.Context) error {
	var c gateway.GatewayClass
	if err := s.client.Get(ctx, client.ObjectKey{Name: class}, &c); err != nil {
		return err
	}
	before := c.DeepCopy()
	c.Status.Conditions = conditions(c.Generation, c.Status.Conditions, nil, "Accepted")
	return s.write(ctx, &c, before)
}

func (s *status) gateways(ctx context.Context) error {
	var all gateway.GatewayList
	if err := s.client.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		g := &all.Items[i]
		address := s.proxies.running[g.Namespace+"/"+g.Name]
		if address == "" {
			continue
		}
		before, found := g.DeepCopy(), s.of("Gateway", g)
		kind := gateway.IPAddressType
		g.Status.Addresses = []gateway.GatewayStatusAddress{{Type: &kind, Value: address}}
		g.Status.Conditions = conditions(g.Generation, g.Status.Conditions, about(found, "spec.gatewayClassName"), "Accepted", "Programmed")
		g.Status.Listeners = nil
		for j, l := range g.Spec.Listeners {
			var old []meta.Condition
			if j < len(before.Status.Listeners) {
				old = before.Status.Listeners[j].Conditions
			}
			g.Status.Listeners = append(g.Status.Listeners, gateway.ListenerStatus{
				Name: l.Name, SupportedKinds: supported(l),
				Conditions: conditions(g.Generation, old, about(found, fmt.Sprintf("spec.listeners[%d]", j)), "Accepted", "Programmed", "ResolvedRefs"),
			})
		}
		if err := s.write(ctx, g, before); err != nil {
			return err
		}
	}
	return nil
}

// supported are the kinds of routes of a listener.
func supported(l gateway.Listener) []gateway.RouteGroupKind {
	group := gateway.Group(gateway.GroupName)
	names := map[gateway.ProtocolType][]gateway.Kind{"HTTP": {"HTTPRoute", "GRPCRoute"}, "HTTPS": {"HTTPRoute", "GRPCRoute"}, "TLS": {"TLSRoute"}, "TCP": {"TCPRoute"}}[l.Protocol]
	all := []gateway.RouteGroupKind{}
	for _, name := range names {
		if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 || slices.ContainsFunc(l.AllowedRoutes.Kinds, func(k gateway.RouteGroupKind) bool { return k.Kind == name }) {
			all = append(all, gateway.RouteGroupKind{Group: &group, Kind: name})
		}
	}
	return all
}

// routeLists are lists of the kinds of routes.
func routeLists() []client.ObjectList {
	return []client.ObjectList{&gateway.HTTPRouteList{}, &gateway.GRPCRouteList{}, &gateway.TLSRouteList{}, &gateway.TCPRouteList{}}
}

func (s *status) routes(ctx context.Context) error {
	for _, list := range routeLists() {
		if err := s.client.List(ctx, list); err != nil {
			return err
		}
		items := reflect.ValueOf(list).Elem().FieldByName("Items")
		for i := range items.Len() {
			item := items.Index(i)
			o := item.Addr().Interface().(client.Object)
			before := o.DeepCopyObject().(client.Object)
			refs := item.FieldByName("Spec").FieldByName("ParentRefs").Interface().([]gateway.ParentReference)
			parents := item.FieldByName("Status").FieldByName("RouteStatus").FieldByName("Parents")
			kind := strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")
			parents.Set(reflect.ValueOf(s.parents(o, refs, parents.Interface().([]gateway.RouteParentStatus), s.of(kind, o))))
			if err := s.write(ctx, o, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// parents are the states of a route at its parents.
func (s *status) parents(o client.Object, refs []gateway.ParentReference, old []gateway.RouteParentStatus, found []finding) []gateway.RouteParentStatus {
	all := []gateway.RouteParentStatus{}
	for i, ref := range refs {
		var before []meta.Condition
		if i < len(old) {
			before = old[i].Conditions
		}
		of := append(about(found, fmt.Sprintf("spec.parentRefs[%d]", i)), about(found, "spec.rules")...)
		all = append(all, gateway.RouteParentStatus{
			ParentRef: ref, ControllerName: "isthmus.dev/gateway-controller",
			Conditions: conditions(o.GetGeneration(), before, of, "Accepted", "ResolvedRefs"),
		})
	}
	return all
}

// write writes a status that changed. Another writer, or the end of the object, is no error.
func (s *status) write(ctx context.Context, now, before client.Object) error {
	if equality.Semantic.DeepEqual(now, before) {
		return nil
	}
	err := s.client.Status().Patch(ctx, now, client.MergeFrom(before))
	return client.IgnoreNotFound(err)
}

// about are the findings at a field or below it.
func about(found []finding, field string) (all []finding) {
	for _, f := range found {
		if strings.HasPrefix(f.Field, field) {
			all = append(all, f)
		}
	}
	return all
}

// unresolved are the codes of references that cannot be used.
var unresolved = []string{"REF_NOT_PERMITTED", "BACKEND_NOT_FOUND", "INVALID_KIND", "INVALID_CERTIFICATE_REF", "INVALID_ROUTE_KINDS"}

// reason is the reason of a condition that a code means.
func reason(code string) (name string) {
	for _, word := range strings.Split(code, "_") {
		name += word[:1] + strings.ToLower(word[1:])
	}
	return name
}

// conditions are those of the types, with what the findings say.
func conditions(generation int64, old []meta.Condition, found []finding, types ...string) (all []meta.Condition) {
	for _, kind := range types {
		c := meta.Condition{Type: kind, Status: meta.ConditionTrue, Reason: kind, ObservedGeneration: generation, LastTransitionTime: meta.Now()}
		for _, f := range found {
			of := "Accepted"
			if slices.Contains(unresolved, f.Code) {
				of = "ResolvedRefs"
			}
			if of == kind && f.Code != "NOT_HONOURED" {
				c.Status, c.Reason, c.Message = meta.ConditionFalse, reason(f.Code), f.Message
				break
			}
		}
		for _, o := range old {
			if o.Type == kind && o.Status == c.Status {
				c.LastTransitionTime = o.LastTransitionTime
			}
		}
		all = append(all, c)
	}
	return all
}
