package graph

import (
	"context"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/graph/model"
)

// namedServices are the services of a snapshot, in the order of their keys, by what objects say of them: the services' places in this
// order.
type namedServices struct {
	all     []*federation.Service
	byName  map[string][]int // by hostname, and by each wildcard that covers it
	byDrain map[federation.ObjectKey][]int
}

// servicesByName groups the services: once in an operation, when a field first asks, however many objects then ask.
func servicesByName(from *federation.Snapshot) *namedServices {
	n := &namedServices{byName: map[string][]int{}, byDrain: map[federation.ObjectKey][]int{}}
	for of := range from.Services().All() {
		place := len(n.all)
		n.all = append(n.all, of)
		for _, name := range federation.Wildcards(of.Key.Hostname) {
			n.byName[name] = append(n.byName[name], place)
		}
		for _, drain := range of.Drains {
			if drain.Refused == "" {
				n.byDrain[drain.Drain] = append(n.byDrain[drain.Drain], place)
			}
		}
	}
	return n
}

// about are the services of the object, in the order of their keys: the way back from objectsAbout, and what a Drain drains.
func (n *namedServices) about(from *federation.Snapshot, kinds []schema.Kind, key federation.ObjectKey) []*federation.Service {
	places := slices.Clone(n.byDrain[key])
	add := func(names []string) {
		for _, name := range names {
			places = append(places, n.byName[name]...)
		}
	}
	if o, ok := from.Object(key); ok {
		add(o.Names)
	}
	if key == federation.GatewayKind.Key(key.Namespace, key.Name) {
		for _, of := range kinds {
			for bound := range from.Objects().Named(of.Kind, kind.GatewayName(key.Namespace, key.Name)) {
				if !kind.Internal(bound.Key.Of()) {
					add(bound.Names)
				}
			}
		}
	}
	slices.Sort(places)
	places = slices.Compact(places)
	services := make([]*federation.Service, len(places))
	for i, place := range places {
		services[i] = n.all[place]
	}
	return services
}

// Services are those that the object names, or that a Drain drains.
func (r objectResolver) Services(
	ctx context.Context, of *model.ConfigObject, first *int, after *string, last *int, before *string,
) (model.ServiceConnection, error) {
	name := "services of object " + of.Of.Key.String()
	window, err := window(name, first, after, last, before)
	list := model.ListMade(name, func() []*federation.Service {
		return seen(ctx).named().about(snapshot(ctx), r.Config.Kinds, of.Of.Key)
	}, serviceKey)
	return model.ServiceConnection{Page: model.NewPage(serviceList(ctx, snapshot(ctx), list, nil), window)}, err
}
