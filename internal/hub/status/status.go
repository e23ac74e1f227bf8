// Package status computes the status of objects: what is wrong with them, and which proxies
// have them.
package status

import (
	"fmt"
	"slices"
	"strings"

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
	Signs   string // the trust domain for which the hub signs certificates; empty: it signs none
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

// ofObject are the problems with the object, and with the services of a ServiceEntry. Two groups have a
// kind Gateway: some name the group, too.
func (s *Objects) ofObject(r *federation.Reader, key federation.ObjectKey) []federation.Problem {
	found := slices.Concat(s.problems(r, key.Title()), s.problems(r, key.String()))
	for _, of := range servicesOf(r, key) {
		for _, p := range s.problems(r, of.Title()) {
			if field := fieldOfEntry(p.Field); field != "" {
				p.Field = field
				found = append(found, p)
			}
		}
	}
	return found
}

// fieldOfEntry is where a ServiceEntry says what that field of a service has; empty: something else says it.
func fieldOfEntry(field string) string {
	switch {
	case field == "hostname":
		return "spec.hosts"
	case strings.HasPrefix(field, "ports["):
		return "spec." + field
	}
	return ""
}

// servicesOf are the services that a ServiceEntry defines.
func servicesOf(r *federation.Reader, key federation.ObjectKey) (all []federation.ServiceKey) {
	if key.Of() != federation.ServiceEntryKind {
		return nil
	}
	if o, ok := r.Object(key); ok {
		for _, host := range o.Names {
			all = append(all, federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: key.Namespace})
		}
	}
	return all
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
	found = append(found, s.otherTrust(r, key)...)
	for _, why := range s.reasons(r, key) {
		found = append(found, apply.Finding{Code: why.Code, Severity: apply.Warning, Message: why.Message, Key: key, Related: why.Related})
	}
	return append(found, s.rejections(of, proxies, key)...)
}

// otherTrustDomain is the code of a finding about MeshSettings.
const otherTrustDomain = "TRUST_DOMAIN_DIFFERS"

// otherTrust says that MeshSettings have another trust domain than the one for which the hub signs.
func (s *Objects) otherTrust(r *federation.Reader, key federation.ObjectKey) []apply.Finding {
	if key != federation.MeshSettingsKey || s.Signs == "" {
		return nil
	}
	wanted := r.Mesh().Trust()
	if wanted == s.Signs {
		return nil
	}
	return []apply.Finding{{
		Code: otherTrustDomain, Severity: apply.Warning, Key: key, Field: "spec.trustDomain",
		Message: fmt.Sprintf("the trust domain of the mesh is %q, and the hub signs certificates for %q only: proxies get none; "+
			"write the same in identity.trustDomain of the hub's config file and restart the hub, or change this field", wanted, s.Signs),
	}}
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
	}
	for _, of := range servicesOf(r, key) {
		r.Spec(of)
		found = append(found, s.Proxies.ServiceReasons(of)...)
	}
	return found
}
