package xds

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// poisonedBuilds panics in builds for which the object or the service called poison was read.
func poisonedBuilds() *builder {
	made := envoyBuilder
	hurt := func(d federation.Deps) {
		for k := range d.Objects.All() {
			if k.Name == "poison" {
				panic("poison")
			}
		}
		if d.Services.Has(key("poisoned")) && d.Services.Len() == 1 {
			panic("poison")
		}
	}
	made.build = func(t envoy.Type, name string, f envoy.Facet, r *federation.Reader) (proto.Message, []envoy.Reason, error) {
		m, reasons, err := envoy.Build(t, name, f, r)
		hurt(r.Deps())
		return m, reasons, err
	}
	made.assemble = func(name string, f envoy.Facet, r *federation.Reader, p envoy.Parts) (*envoy.Assembled, []envoy.Reason, error) {
		if m, _, err := envoy.Build(envoy.RouteType, name, f, r); m != nil && err == nil { // reads all, and so what parts read, too
			hurt(r.Deps())
		}
		return envoy.AssembleRoutes(name, f, r, p)
	}
	return &made
}

func poisonOf(kind string) *federation.Object {
	o := meshRoute("web", "poison")
	o.Key.Name, o.Digest = "poison", kind
	host := o.Names[0]
	switch kind {
	case "DestinationRule":
		o.Spec = &networking.DestinationRule{Host: host}
	case "Gateway":
		o.Spec, o.ProxyLabels, o.Names = tenantGateway("poison", simpleTLS()).Spec, []string{"istio"}, nil
	}
	o.Key.Kind = kind
	return o
}

// TestR12APanicOfABuilderIsAFindingOfItsObject: the object over which a build panics says so, and no other does; the build is
// as before, and it goes on when the object is deleted.
func TestR12APanicOfABuilderIsAFindingOfItsObject(t *testing.T) {
	for kind, typ := range map[string]envoy.Type{
		"VirtualService": envoy.RouteType, "DestinationRule": envoy.ClusterType,
		"Gateway": envoy.ListenerType,
	} {
		t.Run(kind, func(t *testing.T) {
			a := federation.NewAggregate(nil)
			w := a.Open(source1)
			apply := func(gone []federation.ObjectKey, objects ...*federation.Object) *federation.Snapshot {
				set := map[federation.ObjectKey]*federation.Object{}
				for _, o := range objects {
					set[o.Key] = o
				}
				w.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: set, Gone: gone}})
				return a.Latest()
			}
			for i := range 9 {
				w.Update(federation.Edit{Services: service(fmt.Sprintf("s%d", i), 1)})
				apply(nil, meshRoute(fmt.Sprintf("s%d", i), "hello"))
			}
			w.Update(federation.Edit{Services: service("web", 1)})
			node := sidecarNode(t)
			if kind == "Gateway" {
				node = routerNode(t)
				node.Labels = map[string]string{"istio": "ingress"}
			}
			good := tenantGateway("good", simpleTLS())
			good.Digest = "good"
			snapshot := apply(nil, good)
			said := newReasons(nil, func() {})
			groups := groupsOf(typ, node, snapshot, said)
			list := func() (all []string) {
				for _, g := range groups {
					for _, name := range g.list() {
						if r := g.get(name); r != nil {
							all = append(all, name+r.version)
						}
					}
				}
				slices.Sort(all)
				return all
			}
			before := list()
			poison := poisonOf(kind)
			snapshot = apply(nil, poison)
			for _, g := range groups {
				g.sync(snapshot)
			}
			if now := list(); len(now) == 0 || !slices.Equal(now, before) {
				t.Errorf("beside the poison, %q; before, %q", now, before)
			}
			found := said.about(poison.Key)
			if len(found) != 1 || found[0].Code != HubFault {
				t.Errorf("reported on the poison: %v", found)
			}
			if len(said.of) != 1 {
				t.Errorf("it is reported on other objects, too: %v", said.of)
			}
			snapshot = apply([]federation.ObjectKey{poison.Key})
			for _, g := range groups {
				g.sync(snapshot)
			}
			list()
			if found := said.about(poison.Key); len(found) != 0 {
				t.Errorf("when it is gone, %v", found)
			}
			snapshot = apply(nil, poison)
			for _, g := range groups {
				g.sync(snapshot)
			}
			list()
			for _, g := range groups {
				g.close()
			}
			if len(said.of) != 0 {
				t.Errorf("without a proxy, reported: %v", said.of)
			}
		})
	}
}

// groupsOf are groups as a server makes them, whose builders panic over poison.
func groupsOf(typ envoy.Type, n envoy.Node, s *federation.Snapshot, said *reasons) []*group {
	var all []*group
	for _, f := range envoy.Facets(typ, n, s) {
		g := newGroup(typ, f, *poisonedBuilds())
		g.reasoned = said.replace
		g.sync(s)
		all = append(all, g)
	}
	return all
}

// TestR12APanicOverAServiceIsSaidOfIt: a cluster that cannot be built because of its service.
func TestR12APanicOverAServiceIsSaidOfIt(t *testing.T) {
	h := newHub(t, func(o *Options) {
		o.builder, o.Logger = poisonedBuilds(), slog.New(slog.NewTextHandler(io.Discard, nil))
	})
	h.set(service("web", 1), service("poisoned", 1))
	c := h.client(xdstest.Options{Delta: true, Node: router()})
	wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS}), cluster("web"))
	if found := h.server.ServiceReasons(key("poisoned")); len(found) != 1 || found[0].Code != HubFault {
		t.Errorf("reported on the service: %v", found)
	}
	if found := h.server.ServiceReasons(key("web")); len(found) != 0 {
		t.Errorf("reported on another object: %v", found)
	}
	c.Close()
	h.eventually("the proxy is gone", func(v *fleet.Value) bool { return v.Count() == 0 })
}
