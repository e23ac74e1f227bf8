package resource

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
		return inNamespace(t, n, o.Namespace)
	}
	return withFileProblems(ctx, s, NotFound(t, n))
}

// withFileProblems adds what is wrong with the hub's folder of manifests: an object of a file that cannot be used is not
// found.
func withFileProblems(ctx context.Context, s *session.Session, missing error) error {
	answer, err := client.Sources(ctx, s)
	if err != nil {
		return missing // the object is missed, not the sources
	}
	for _, source := range answer.ConfigSources {
		if source.Kind == client.ConfigSourceKindFile && len(source.Problems) > 0 {
			return fmt.Errorf("%w; the hub cannot use a file that may have it: %s", missing, strings.Join(output.SourceProblems(source, 2), "; "))
		}
	}
	return missing
}

// inNamespace is that a thing is not where it was looked for, and where one of its name is.
func inNamespace(t Target, n Name, namespace string) error {
	return fmt.Errorf("%s %q %w in namespace %q; there is one in namespace %q: use -n %s",
		t.Plural(), n.Name, errNotFound, n.Namespace, namespace, namespace)
}

// OrNotFound is the error, or, without one, that there is no such thing.
func OrNotFound(err error, t Target, n Name) error {
	if err != nil {
		return err
	}
	return NotFound(t, n)
}
