package graph

import (
	"context"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/graph/model"
)

// titled reads the Title of an object of the kind; false: it is not one.
func titled(title string, of federation.Kind) (federation.ObjectKey, bool) {
	name, is := strings.CutPrefix(title, of.Name+" ")
	name, cluster, _ := strings.Cut(name, " of cluster ")
	namespace, short, scoped := strings.Cut(name, "/")
	if !scoped {
		namespace, short = "", name
	}
	return federation.ObjectKey{
		Group: of.Group, Kind: of.Name, Namespace: namespace, Name: short, Cluster: federation.ClusterID(cluster),
	}, is
}

// shownProblem shows a problem of a cluster; "": of a source of configuration.
func shownProblem(r *resolver, of federation.Problem, in federation.ClusterID) model.Problem {
	return model.Problem{
		Of:          of,
		Named:       func(ctx context.Context) *model.ConfigObject { return objectTitled(ctx, r.Config.Kinds, of.Object) },
		Contributed: func(ctx context.Context) *model.Service { return serviceTitled(ctx, in, of.Object) },
	}
}

// objectTitled is the object in force that the problem names. Problems name objects by their titles, which have no
// group: nil, if objects of several groups have the title.
func objectTitled(ctx context.Context, kinds []schema.Kind, title string) *model.ConfigObject {
	var found *model.ConfigObject
	for _, kind := range kinds {
		key, is := titled(title, kind.Kind)
		if !is {
			continue
		}
		if object := objectOf(ctx, key); object != nil {
			if found != nil {
				return nil
			}
			found = object
		}
	}
	return found
}

// serviceTitled is the service that the cluster contributes with the Service that the problem names. Its hostname begins
// with the name and the namespace in Kubernetes, and with the name in Consul.
func serviceTitled(ctx context.Context, in federation.ClusterID, title string) *model.Service {
	key, is := titled(title, federation.Kind{Name: "Service"})
	if !is || in == "" {
		return nil
	}
	prefix := key.Name + "."
	if key.Namespace != "" {
		prefix += key.Namespace + "."
	}
	from := snapshot(ctx)
	for found := range from.Services().From(federation.ServiceKey{Hostname: federation.Hostname(prefix)}) {
		if !strings.HasPrefix(string(found.Key.Hostname), prefix) {
			break
		}
		for _, source := range found.Order() {
			if source.Cluster == in {
				return service(from, found)
			}
		}
	}
	return nil
}
