package writeback

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

// round is what the statuses of one round are computed from.
type round struct {
	view     *config.View
	snapshot *federation.Snapshot
	settings *federation.MeshSettings
	sources  map[federation.ClusterID]federation.ResourceSource
	mesh     wanted.Mesh
	classes  map[federation.ClusterID]map[string]string
}

// look takes the newest of everything: the view first, so that the snapshot has what it says.
func (w *Writer) look() round {
	l := round{view: w.parts.Views.Latest(), sources: map[federation.ClusterID]federation.ResourceSource{}}
	l.snapshot = w.o.Snapshots.Latest()
	l.settings = l.snapshot.Mesh()
	if l.settings != nil {
		for _, source := range l.settings.Sources {
			l.sources[source.Cluster] = source
		}
	}
	l.mesh = wanted.Mesh{Gateways: w.parts.Gateways.Of, OtherHubs: w.parts.Proxies.OtherHubs()}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.classes = w.classes
	return l
}

// at is the look for one object: what it reads and what proxies have of it is noted.
func (l round) at(proxies Proxies, of *inputs) round {
	l.mesh.Read = l.snapshot.Read().For(federation.AnyCluster)
	l.mesh.Read.Mesh() // says what is covered
	l.mesh.Findings = func(key federation.ObjectKey) []wanted.Finding { return proxies.Findings(l.snapshot, l.mesh.Read, key) }
	l.mesh.MissingSecret = func(cluster federation.ClusterID, secret gatewayapi.Secret) string {
		of.followed = append(of.followed, proxies.Follow(cluster, secret))
		return proxies.MissingSecret(l.mesh.Read, cluster, secret)
	}
	l.mesh.Delivered = func(keys ...federation.ObjectKey) (wanted.Delivery, bool) {
		for _, key := range keys {
			l.mesh.Read.Object(key)
		}
		d, known := proxies.Delivered(l.snapshot, keys...)
		of.counted, of.open, of.idle = keys, d.Waiting+d.Refused > 0, d.Accepted == 0
		return d, known
	}
	return l
}

// covers reports whether the settings have the status of the object written.
func (l round) covers(o *crd.Original) bool {
	if o.Key.Of() == federation.IngressKind {
		return l.settings != nil && l.settings.IngressStatus && l.settings.IngressControllerMode != "" &&
			l.settings.IngressControllerMode != federation.IngressOff
	}
	source, named := l.sources[o.Cluster]
	if !named || !source.Status || len(source.Kinds) > 0 && !slices.Contains(source.Kinds, o.Key.Of().String()) {
		return false
	}
	return slices.Contains(source.Namespaces, "*") || o.Key.Namespace != "" && slices.Contains(source.Namespaces, o.Key.Namespace)
}

// writable reports whether the cluster is one that may be written: attached, proven, and in
// no trouble.
func (l round) writable(id federation.ClusterID) bool {
	c, attached := l.mesh.Read.Cluster(id)
	return attached && c.Identity.UID != "" && c.Status.Phase == federation.Ready
}

// identity is the UID of the cluster.
func (l round) identity(id federation.ClusterID) string {
	c, attached := l.snapshot.Cluster(id)
	if !attached {
		return ""
	}
	return c.Identity.UID
}

func (l round) attached(id federation.ClusterID) bool {
	_, attached := l.snapshot.Cluster(id)
	return attached
}

// change is the merge patch for the status of an object; nil: none. known is false as long
// as the hub does not know yet what the object means as it is now.
func (l round) change(o *crd.Original, now time.Time) (patch map[string]any, known bool) {
	kind := o.Key.Of()
	switch {
	case !l.covers(o):
		if !o.Ours {
			return nil, true
		}
		return wanted.Change(kind, o.Status, nil, now), true
	case kind == federation.IngressKind:
		status := l.ofIngress(o)
		if status == nil && !o.Ours {
			return nil, true
		}
		return wanted.Change(kind, o.Status, status, now), true
	}
	object, known := l.object(o)
	if !known {
		return nil, false
	}
	status, known := wanted.For(l.mesh, object)
	if !known || status == nil && !o.Ours {
		return nil, known
	}
	return wanted.Change(kind, o.Status, status, now), true
}

// keyOf is the key under which an object of a cluster is configuration.
func (l round) keyOf(at ref) federation.ObjectKey {
	if l.sources[at.cluster].Scope != federation.ScopeMesh {
		at.key.Cluster = at.cluster
	}
	return at.key
}

// object is the object as configuration. It is not known if the hub has not taken it up yet.
func (l round) object(o *crd.Original) (wanted.Object, bool) {
	key := l.keyOf(ref{o.Cluster, o.Key})
	l.mesh.Read.Object(key)
	object := wanted.Object{Cluster: o.Cluster, Key: key, Generation: o.Generation, Invalid: o.Problems, Unknown: o.Unknown, Spec: o.Spec}
	if o.Manifest == nil {
		return object, true
	}
	counts, exists := l.view.State.Object(key)
	switch {
	case !exists:
		return object, false
	case bytes.Equal(counts.Manifest, o.Manifest):
		return object, true
	case bytes.Contains(counts.Manifest, []byte(strconv.Quote(o.UID))):
		return object, false
	}
	by, _ := l.view.SourceOf(key)
	object.Hidden = fmt.Sprintf("another object of this name counts: that of the source %s", by)
	return object, true
}

// older reports whether a version of a cluster is older than another one.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}
