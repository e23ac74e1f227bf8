package hub

import (
	"context"
	"net/http"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	configkind "isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/xds/envoy"
)

// notHonoured is the code of a field that the hub does not act on.
const notHonoured = "NOT_HONOURED"

// statusOf tells what becomes of an object: from the problems that the hub's own
// cluster has with it, and from what proxies' resources are not made of.
type statusOf struct {
	hub     federation.ClusterID
	proxies interface {
		Reasons(key federation.ObjectKey) []envoy.Reason
		ServiceReasons(key federation.ServiceKey) []envoy.Reason
		Object(of *fleet.Value, key federation.ObjectKey) fleet.Affected
	}
}

// notHonoured says which fields of the object have no effect in the snapshot.
func (s statusOf) notHonoured(snapshot *federation.Snapshot, o *federation.Object) []model.NotHonoured {
	found := []model.NotHonoured{}
	for _, f := range envoy.NotHonoured(o) {
		path := "spec." + f.Path
		if f.Path == "spec" {
			path = f.Path
		}
		found = append(found, model.NotHonoured{Field: path, Reason: f.Reason})
	}
	for p := range s.problems(snapshot, o.Key) {
		if p.Code == notHonoured {
			found = append(found, model.NotHonoured{Field: p.Field, Reason: p.Message})
		}
	}
	return found
}

// findings are the other problems with the object.
func (s statusOf) findings(snapshot *federation.Snapshot, proxies *fleet.Value, key federation.ObjectKey) []apply.Finding {
	found := append([]apply.Finding{}, apply.References(snapshot, key)...)
	for p := range s.problems(snapshot, key) {
		if p.Code != notHonoured {
			found = append(found, apply.Finding{Code: p.Code, Severity: apply.Warning, Message: p.Message, Key: key, Field: p.Field})
		}
	}
	for _, r := range s.reasons(snapshot, key) {
		found = append(found, apply.Finding{Code: r.Code, Severity: apply.Warning, Message: r.Message, Key: key, Related: r.Related})
	}
	return append(found, s.rejections(snapshot, proxies, key)...)
}

// serviceFindings are those of a service of a registry, and of one that an object
// defines.
func (s statusOf) serviceFindings(snapshot *federation.Snapshot, key federation.ServiceKey) []apply.Finding {
	var found []apply.Finding
	for _, r := range s.proxies.ServiceReasons(key) {
		found = append(found, apply.Finding{Code: r.Code, Severity: apply.Warning, Message: r.Message, Related: r.Related})
	}
	return found
}

// reasons are why connected proxies do not have all of the object, or of the
// services of a ServiceEntry.
func (s statusOf) reasons(snapshot *federation.Snapshot, key federation.ObjectKey) []envoy.Reason {
	found := s.proxies.Reasons(key)
	if o, ok := snapshot.Object(key); ok {
		if key.Of() == configkind.ServiceEntry {
			for _, host := range o.Names {
				of := federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: key.Namespace}
				found = append(found, s.proxies.ServiceReasons(of)...)
			}
		}
	}
	return found
}

func (s statusOf) problems(snapshot *federation.Snapshot, key federation.ObjectKey) func(func(federation.Problem) bool) {
	return func(yield func(federation.Problem) bool) {
		for p := range snapshot.Problems(s.hub) {
			if p.Object == key.Title() && !yield(p) {
				return
			}
		}
	}
}

type callerKey struct{}

// withCaller notes who asks, by the verified certificate: its first URI (such as
// a SPIFFE ID), else its common name, else its first DNS name.
func withCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			leaf, name := r.TLS.PeerCertificates[0], ""
			switch {
			case len(leaf.URIs) > 0:
				name = leaf.URIs[0].String()
			case leaf.Subject.CommonName != "":
				name = leaf.Subject.CommonName
			case len(leaf.DNSNames) > 0:
				name = leaf.DNSNames[0]
			}
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, name))
		}
		next.ServeHTTP(w, r)
	})
}

// callerOf names who asks; empty where nobody proved who they are.
func callerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}
