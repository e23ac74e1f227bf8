package resource

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

// errNotFound is part of all errors that say so.
var errNotFound = errors.New("not found")

// IsNotFound reports whether an error is that there is no such thing.
func IsNotFound(err error) bool { return errors.Is(err, errNotFound) }

// NotFound is that there is no such thing.
func NotFound(t Target, n Name) error {
	in, all := "", ""
	if t.Namespaced() {
		in, all = fmt.Sprintf(" in namespace %q", n.Namespace), " -A"
	}
	return fmt.Errorf("%s %q %w%s; \"isthmus get %s%s\" lists them", t.Plural(), n.Name, errNotFound, in, t.Word, all)
}

// Objects yields the objects of a name: the one for all proxies, and those of single
// clusters. If there is none, the error says where one of the name is.
func Objects(ctx context.Context, s *session.Session, t Target, n Name) iter.Seq2[client.ObjectSummary, error] {
	filter := &client.ConfigObjectFilter{Group: &t.Kind.Group, Kind: &t.Kind.Kind, Namespace: &n.Namespace, Name: &n.Name}
	return func(yield func(client.ObjectSummary, error) bool) {
		some := false
		for o, err := range s.Objects(ctx, filter) {
			some = true
			if !yield(o, err) || err != nil {
				return
			}
		}
		if !some {
			yield(client.ObjectSummary{}, elsewhere(ctx, s, t, n))
		}
	}
}

// Refs are the references to the objects of a name, as Objects finds them.
func Refs(ctx context.Context, s *session.Session, t Target, n Name) ([]client.Ref, error) {
	var refs []client.Ref
	for o, err := range Objects(ctx, s, t, n) {
		if err != nil {
			return nil, err
		}
		refs = append(refs, RefOf(o))
	}
	return refs, nil
}

// RefOf is the reference to an object.
func RefOf(o client.ObjectSummary) client.Ref {
	return client.Ref{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, ClusterID: o.ClusterID}
}

// Everywhere is the reference to the object of a name for all proxies.
func Everywhere(t Target, n Name) client.Ref {
	return client.Ref{Group: t.Kind.Group, Kind: t.Kind.Kind, Namespace: n.Namespace, Name: n.Name}
}

// elsewhere is that an object is not there, and where one of its name is.
func elsewhere(ctx context.Context, s *session.Session, t Target, n Name) error {
	filter := &client.ConfigObjectFilter{Group: &t.Kind.Group, Kind: &t.Kind.Kind, Name: &n.Name}
	for o, err := range s.Objects(ctx, filter) {
		if err != nil {
			break
		}
		return fmt.Errorf("%s %q %w in namespace %q; there is one in namespace %q: use -n %s",
			t.Plural(), n.Name, errNotFound, n.Namespace, o.Namespace, o.Namespace)
	}
	return NotFound(t, n)
}

// Proxy finds a proxy by its node ID or the third part of it, with CLUSTER/
// before it where several clusters have such a proxy.
func Proxy(ctx context.Context, s *session.Session, t Target, n Name) (client.ProxySummary, error) {
	answer, err := client.ProxyDetails(ctx, s, n.Name)
	if err != nil {
		return client.ProxySummary{}, err
	}
	if answer.Proxy != nil {
		return *answer.Proxy, nil
	}
	found := map[string]client.ProxySummary{}
	for one, err := range s.Proxies(ctx, nil) {
		if err != nil {
			return client.ProxySummary{}, err
		}
		if isNamed(one, n.Name) {
			found[ProxyKey(one)] = one
		}
	}
	names := slices.Sorted(maps.Keys(found))
	switch len(names) {
	case 0:
		return client.ProxySummary{}, NotFound(t, n)
	case 1:
		return found[names[0]], nil
	}
	return client.ProxySummary{}, fmt.Errorf("%q is the name of several proxies; use one of %s", n.Name, strings.Join(names, ", "))
}

func isNamed(proxy client.ProxySummary, name string) bool {
	if proxy.NodeID == name || ProxyKey(proxy) == name {
		return true
	}
	parts := strings.Split(proxy.NodeID, "~")
	return len(parts) > 2 && (parts[2] == name || output.OrEmpty(proxy.ClusterID)+"/"+parts[2] == name)
}

// OrNotFound is the error, or, without one, that there is no such thing.
func OrNotFound(err error, t Target, n Name) error {
	if err != nil {
		return err
	}
	return NotFound(t, n)
}

// Hostname finds the hostname of a service of which only the first labels are
// given, as reviews or reviews.shop for reviews.shop.svc.cluster.local.
func Hostname(ctx context.Context, s *session.Session, t Target, n Name) (Name, error) {
	answer, err := client.ServiceByName(ctx, s, n.Name, &n.Namespace)
	if err != nil || answer.Service != nil {
		return n, err
	}
	var found []string
	for one, err := range s.Services(ctx, &client.ServiceFilter{Namespace: &n.Namespace, HostnameContains: &n.Name}) {
		if err != nil {
			return n, err
		}
		if strings.HasPrefix(one.Hostname, strings.ToLower(n.Name)+".") {
			found = append(found, one.Hostname)
		}
	}
	switch len(found) {
	case 0:
		return n, NotFound(t, n)
	case 1:
		return Name{Namespace: n.Namespace, Name: found[0]}, nil
	}
	return n, fmt.Errorf("%q is the name of several services; use one of %s", n.Name, strings.Join(found, ", "))
}

// ProxyKey tells a proxy from those of other clusters with the same node ID.
func ProxyKey(of client.ProxySummary) string { return output.OrEmpty(of.ClusterID) + "/" + of.NodeID }
