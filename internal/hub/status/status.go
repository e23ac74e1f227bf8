// Package status computes the status of objects: what is wrong with them, and which proxies
// have them.
package status

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/envoyfilter"
)

// Objects computes the status of an object: from the problems that the hub's own
// cluster has with it, and from what proxies' resources are not made of.
type Objects struct {
	Hub     federation.ClusterID
	Proxies interface {
		Reasons(key federation.ObjectKey) []envoy.Reason
		ServiceReasons(key federation.ServiceKey) []envoy.Reason
		Object(of *federation.Snapshot, proxies *fleet.Value, key federation.ObjectKey) fleet.Affected
	}
}

// problems are what the hub's cluster has to say about the thing that problems call so.
func (s *Objects) problems(r *federation.Reader, title string) []federation.Problem {
	return federation.ReadProblems(r, federation.ProblemSubject{Cluster: s.Hub, Object: title})
}

// ofObject are the problems with the object. Two groups have a kind Gateway: some name the
// group, too.
func (s *Objects) ofObject(r *federation.Reader, key federation.ObjectKey) []federation.Problem {
	return slices.Concat(s.problems(r, key.Title()), s.problems(r, key.String()))
}

// NotHonoured says which fields of the object have no effect in the snapshot.
func (s *Objects) NotHonoured(snapshot *federation.Snapshot, o *federation.Object) []model.NotHonoured {
	return s.notHonoured(snapshot.Read(), o)
}

func (s *Objects) notHonoured(r *federation.Reader, o *federation.Object) []model.NotHonoured {
	found := []model.NotHonoured{}
	for _, f := range envoy.NotHonoured(o) {
		path := "spec." + f.Path
		if f.Path == "spec" {
			path = f.Path
		}
		found = append(found, model.NotHonoured{Field: path, Reason: f.Reason})
	}
	for _, p := range s.ofObject(r, o.Key) {
		if p.Code == federation.CodeNotHonoured {
			found = append(found, model.NotHonoured{Field: p.Field, Reason: p.Message})
		}
	}
	return found
}

// Findings are the other problems with the object.
func (s *Objects) Findings(snapshot *federation.Snapshot, proxies *fleet.Value, key federation.ObjectKey) []apply.Finding {
	return s.findings(reading{snapshot.Read().For(federation.AnyCluster), snapshot}, proxies, key)
}

// reading is a Reader and the snapshot that it reads.
type reading struct {
	*federation.Reader
	snapshot *federation.Snapshot
}

func (s *Objects) findings(of reading, proxies *fleet.Value, key federation.ObjectKey) []apply.Finding {
	r := of.Reader
	found := append([]apply.Finding{}, apply.References(r, key)...)
	for _, p := range s.ofObject(r, key) {
		if p.Code != federation.CodeNotHonoured {
			found = append(found, apply.Finding{Code: p.Code, Severity: apply.Warning, Message: p.Message, Key: key, Field: p.Field})
		}
	}
	for _, why := range s.reasons(r, key) {
		found = append(found, apply.Finding{Code: why.Code, Severity: apply.Warning, Message: why.Message, Key: key, Related: why.Related})
	}
	return append(found, s.rejections(of, proxies, key)...)
}

// ServiceFindings are those of a service of a registry, and of one that an object
// defines.
func (s *Objects) ServiceFindings(snapshot *federation.Snapshot, key federation.ServiceKey) []apply.Finding {
	var found []apply.Finding
	for _, r := range s.Proxies.ServiceReasons(key) {
		found = append(found, apply.Finding{Code: r.Code, Severity: apply.Warning, Message: r.Message, Related: r.Related})
	}
	return found
}

// reasons are why connected proxies do not have all of the object, or of the
// services of a ServiceEntry.
func (s *Objects) reasons(r *federation.Reader, key federation.ObjectKey) []envoy.Reason {
	found := s.Proxies.Reasons(key)
	if o, ok := r.Object(key); ok {
		if key.Of() == federation.EnvoyFilterKind {
			found = envoyfilter.Found(o, r.Mesh(), found)
		}
		if key.Of() == federation.ServiceEntryKind {
			for _, host := range o.Names {
				of := federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: key.Namespace}
				r.Spec(of)
				found = append(found, s.Proxies.ServiceReasons(of)...)
			}
		}
	}
	return found
}
