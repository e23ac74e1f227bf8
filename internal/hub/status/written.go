package status

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/identity"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// Written tells what the status of objects says that is written into clusters.
type Written struct {
	Objects *Objects
	Fleet   *fleet.Fleet
	Secrets *identity.Secrets
	Reasons func() ([]federation.ObjectKey, []federation.ServiceKey) // that changed since it was called last
	Others  func() int                                               // hubs that run beside this one
	last    *lastNews
}

// NewWritten tells about what the server serves to the fleet, and about the Secrets that it has.
func NewWritten(objects *Objects, server *xds.Server, of *fleet.Fleet, secrets *identity.Secrets) Written {
	reasons := func() ([]federation.ObjectKey, []federation.ServiceKey) { return xds.ReasonsChanged(server) }
	return Written{Objects: objects, Fleet: of, Secrets: secrets, Reasons: reasons, last: &lastNews{}}
}

// Changed is part of writeback.Proxies.
func (w Written) Changed() <-chan struct{} { return w.Fleet.Latest().Superseded() }

// OtherHubs is part of writeback.Proxies.
func (w Written) OtherHubs() int { return w.Others() }

// Findings is part of writeback.Proxies.
func (w Written) Findings(of *federation.Snapshot, r *federation.Reader, key federation.ObjectKey) (all []wanted.Finding) {
	if o, exists := r.Object(key); exists {
		for _, n := range w.Objects.notHonoured(r, o) {
			all = append(all, wanted.Finding{Code: federation.CodeNotHonoured, Field: n.Field, Message: n.Reason})
		}
	}
	for _, f := range w.Objects.findings(reading{r, of}, w.Fleet.Latest(), key) {
		all = append(all, wanted.Finding{Code: f.Code, Field: f.Field, Message: f.Message, Error: f.Severity != apply.Warning})
	}
	return all
}

// Follow is part of writeback.Proxies.
func (w Written) Follow(cluster federation.ClusterID, secret gatewayapi.Secret) (done func()) {
	return w.Secrets.Follow(refOf(cluster, secret))
}

func refOf(cluster federation.ClusterID, s gatewayapi.Secret) identity.Ref {
	return identity.Ref{Cluster: cluster, Namespace: s.Namespace, Name: s.Name, Authorities: s.Authorities, Granted: s.Granted}
}

// MissingSecret is part of writeback.Proxies.
func (w Written) MissingSecret(r *federation.Reader, cluster federation.ClusterID, secret gatewayapi.Secret) (why string) {
	var missing bool
	var texts []string
	for _, p := range w.Objects.problems(r, refOf(cluster, secret).Title()) {
		missing = missing || p.Code == identity.ProblemMissing
		texts = append(texts, p.Message)
	}
	if !missing {
		return ""
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

// Delivered is part of writeback.Proxies.
func (w Written) Delivered(of *federation.Snapshot, keys ...federation.ObjectKey) (d wanted.Delivery, known bool) {
	now := w.Fleet.Latest()
	for _, key := range keys {
		if supported.Uncounted(key.Of()) {
			return wanted.Delivery{}, false
		}
		a := w.Objects.Proxies.Object(of, now, key)
		d.Accepted, d.Waiting, d.Refused = d.Accepted+a.Accepted, d.Waiting+a.Waiting+a.Delivered, d.Refused+a.Refused
	}
	return d, true
}
