package fetch

import (
	"fmt"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks"
)

// Limits of the URIs from which keys are fetched. The oldest objects come first.
const (
	mostSources     = 1000
	mostOfNamespace = 100
)

// demand follows which sources the rules of a mesh need.
type demand struct {
	cursor  uint64
	objects map[federation.ObjectKey]*federation.Object // RequestAuthentications
}

// follow notes what changed since the last call. It reports whether objects did.
func (w *demand) follow(s *federation.Snapshot) (changed bool) {
	changes := s.ChangesSince(w.cursor)
	w.cursor = s.Version()
	if changes.All {
		w.objects = map[federation.ObjectKey]*federation.Object{}
		for o := range s.Objects().Of(jwks.Kind) {
			w.objects[o.Key] = o
		}
		return true
	}
	for _, c := range changes.Objects {
		if c.Key.Of() != jwks.Kind {
			continue
		}
		changed = true
		delete(w.objects, c.Key)
		o, exists := s.Object(c.Key)
		if exists {
			w.objects[c.Key] = o
		}
	}
	return changed
}

// sources are those to fetch from, each with the longest timeout of its rules, and why others are
// beyond the limits.
func (w *demand) sources() (fetched map[federation.KeySource]time.Duration, refused map[federation.KeySource]string) {
	fetched, refused = map[federation.KeySource]time.Duration{}, map[federation.KeySource]string{}
	count := map[string]int{}
	oldest := make([]*federation.Object, 0, len(w.objects))
	for _, o := range w.objects {
		oldest = append(oldest, o)
	}
	slices.SortFunc(oldest, (*federation.Object).CompareAge)
	for _, o := range oldest {
		for _, rule := range jwks.Rules(o) {
			from, remote := jwks.SourceOf(rule)
			_, known := fetched[from]
			why := beyond(len(fetched), count[o.Key.Namespace], o.Key.Namespace)
			switch {
			case !remote:
				continue
			case !known && why != "":
				refused[from] = why
				continue
			case !known:
				count[o.Key.Namespace]++
				delete(refused, from)
			}
			fetched[from] = max(fetched[from], jwks.Timeout(rule))
		}
	}
	return fetched, refused
}

// beyond says why one more source is too many; empty: it is not.
func beyond(all, ofNamespace int, namespace string) string {
	switch {
	case ofNamespace >= mostOfNamespace:
		return fmt.Sprintf("older objects of namespace %s name %d other URIs, the most of one namespace", namespace, mostOfNamespace)
	case all >= mostSources:
		return fmt.Sprintf("older objects name %d other URIs, the most of a mesh", mostSources)
	}
	return ""
}
