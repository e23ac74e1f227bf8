package resource

import (
	"context"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/session"
)

// Hostname finds the hostname of a service of which only the first labels may be given, as
// reviews or reviews.shop for reviews.shop.svc.cluster.local. A name of several labels says
// where it is: without -n, it is found in every namespace.
func Hostname(ctx context.Context, s *session.Session, t Target, n Name) (Name, error) {
	answer, err := client.ServiceByName(ctx, s, n.Name, &n.Namespace)
	if err != nil || answer.Service != nil {
		return n, err
	}
	var all []Name
	for one, err := range s.Services(ctx, &client.ServiceFilter{HostnameContains: &n.Name}) {
		if err != nil {
			return n, err
		}
		all = append(all, Name{Namespace: one.Namespace, Name: one.Hostname})
	}
	return choose(t, n, all, strings.Contains(n.Name, ".") && n.Namespace == s.Namespace)
}

// choose returns the one of the services that has the name and is in its namespace, or, if
// anywhere is set and that namespace has none, in another.
func choose(t Target, n Name, all []Name, anywhere bool) (Name, error) {
	var here, elsewhere []Name
	for _, one := range all {
		switch {
		case !strings.HasPrefix(one.Name+".", strings.ToLower(n.Name)+"."):
		case one.Namespace == n.Namespace:
			here = append(here, one)
		default:
			elsewhere = append(elsewhere, one)
		}
	}
	switch {
	case len(here) == 1:
		return here[0], nil
	case len(here) > 1:
		return n, severalServices(n, here)
	case anywhere && len(elsewhere) == 1:
		return elsewhere[0], nil
	case len(elsewhere) > 0:
		return n, inNamespace(t, n, elsewhere[0].Namespace)
	}
	return n, fmt.Errorf("%s %q %w in any namespace; \"isthmus get %s -A\" lists them", t.Plural(), n.Name, errNotFound, t.Word)
}

func severalServices(n Name, found []Name) error {
	var names []string
	for _, one := range found {
		names = append(names, one.Name)
	}
	return fmt.Errorf("%q is the name of several services; use one of %s", n.Name, strings.Join(names, ", "))
}
