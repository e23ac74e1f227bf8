package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// analyse finds what a change would bring about beside what was asked for: problems
// and disagreements that the snapshot after it has and that before it has not, and
// references of the changed objects to objects that do not exist.
func analyse(before, after *federation.Snapshot, changes []Change) []Finding {
	if before == nil || after == nil {
		return nil
	}
	known := map[string]bool{}
	for _, f := range troubles(before, after, before) {
		known[f.Code+"\x00"+f.Message] = true
	}
	var found []Finding
	for _, f := range troubles(before, after, after) {
		if !known[f.Code+"\x00"+f.Message] {
			f.Key = affected(changes, f.Message)
			found = append(found, f)
		}
	}
	for _, c := range changes {
		if c.Object != nil {
			found = append(found, c.references(after.Read())...)
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return found
}

// references finds what References finds of the object.
func (c Change) references(in *federation.Reader) []Finding {
	if c.said == nil {
		return References(in, c.Key)
	}
	o, ok := in.For(federation.AnyCluster).Object(c.Key)
	if !ok {
		return nil
	}
	return references(in, o, *c.said)
}

// troubles lists the problems of the snapshot's clusters and the conflicts of
// the services that differ between before and after.
func troubles(before, after, of *federation.Snapshot) []Finding {
	var found []Finding
	changes := after.ChangesSince(before.Version())
	for _, id := range changes.Clusters {
		for p := range of.Problems(id) {
			found = append(found, Finding{Code: p.Code, Severity: Warning, Field: p.Field, Message: p.Object + ": " + p.Message})
		}
	}
	for _, change := range changes.Services {
		if svc, ok := of.Service(change.Key); ok {
			for _, c := range svc.Conflicts {
				found = append(found, Finding{Code: string(c.Kind), Severity: Warning, Message: fmt.Sprintf("service %s: %s", change.Key, c.Message)})
			}
		}
	}
	return found
}

// affected guesses which of the changed objects a message is about: the only
// one, or the one that it names.
func affected(changes []Change, message string) federation.ObjectKey {
	for _, c := range changes {
		if named(message, c.Key) {
			return c.Key
		}
	}
	if len(changes) == 1 {
		return changes[0].Key
	}
	return federation.ObjectKey{}
}

func named(message string, key federation.ObjectKey) bool {
	return strings.Contains(message, key.Kind+" "+key.Namespace+"/"+key.Name+":")
}
