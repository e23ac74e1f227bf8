package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
)

// Named is part of attach.RemoteTaker.
func (r *Reconciler) Named(holder federation.ClusterID, by attach.RemoteKind, all []attach.Remote) {
	h := Holder{holder, by}
	r.post(func(in *Inputs) {
		before := in.Remotes[h]
		was, _ := in.entries(h)
		known := map[[2]string]Entry{}
		for _, e := range before.Named {
			known[e.names()] = e
		}
		next := Remotes{Asked: true, Read: true, Waiting: before.Waiting}
		for _, remote := range all {
			next.Named = append(next.Named, r.entry(h, remote, known))
		}
		next.Named = before.attachedFirst(was, next.Named)
		in.Remotes[h] = next
		is, _ := in.entries(h)
		r.logNamed(h, was, is)
	})
}

// Unreadable is part of attach.RemoteTaker. What was named stays.
func (r *Reconciler) Unreadable(holder federation.ClusterID, by attach.RemoteKind, why string, unasked bool) {
	h := Holder{holder, by}
	r.post(func(in *Inputs) {
		of := in.Remotes[h]
		of.Asked = of.Asked || unasked
		of.Unreadable = why
		r.o.Logger.Warn("the objects that name clusters are not read; the clusters that they named stay attached",
			"cluster", holder, "kind", remoteKinds[by].noun, "reason", why)
		r.o.Metrics.RemotesUnreadable(holder, remoteKinds[by].noun)
		in.Remotes[h] = of
	})
}

// attachedFirst are the entries in their order, those first that were attached before: if there are too many,
// a new object does not detach a cluster.
func (s Remotes) attachedFirst(was, now []Entry) []Entry {
	attached := namesOf(was)
	first := func(e Entry) bool {
		return attached[e.names()] || slices.Contains(s.waiting(), federation.ClusterID(e.Key))
	}
	var others []Entry
	ordered := make([]Entry, 0, len(now))
	for _, e := range now {
		if first(e) {
			ordered = append(ordered, e)
		} else {
			others = append(others, e)
		}
	}
	return append(ordered, others...)
}

// names is what an entry is known by.
func (e Entry) names() [2]string { return [2]string{e.Object, e.Key} }

func namesOf(all []Entry) map[[2]string]bool {
	names := make(map[[2]string]bool, len(all))
	for _, e := range all {
		names[e.names()] = true
	}
	return names
}

// entry is what an object names, with the claim that it makes. One that says what it
// said before is not read again.
func (r *Reconciler) entry(h Holder, named attach.Remote, before map[[2]string]Entry) Entry {
	sum := sha256.Sum256([]byte(named.Kubeconfig.Reveal() + named.Refused))
	e := Entry{Object: named.Object, Key: named.Key, Digest: hex.EncodeToString(sum[:])}
	if old, known := before[e.names()]; known && old.Digest == e.Digest {
		return old
	}
	e.Claim = r.claim(h, named)
	return e
}

func (r *Reconciler) claim(h Holder, named attach.Remote) Claim {
	id, why := federation.ClusterID(named.Key), named.Refused
	if why == "" {
		credentials, err := kube.Parse([]byte(named.Kubeconfig.Reveal()), r.o.Rules)
		if err == nil {
			return Claim{Cluster: r.o.Remote(id, credentials)}
		}
		why = err.Error()
	}
	return Refuse(id, federation.ClusterSpec{Provider: federation.Kubernetes}, fmt.Sprintf("%s %s of cluster %s: %s", remoteKinds[h.By].noun,
		named.Object, h.Cluster, why))
}

// logNamed tells what the objects of a holder name now, and what no more.
func (r *Reconciler) logNamed(h Holder, before, now []Entry) {
	noun, were, are := remoteKinds[h.By].noun, namesOf(before), namesOf(now)
	for _, e := range now {
		if !were[e.names()] {
			r.o.Logger.Info("attaching a cluster: an object names it", "cluster", e.Key, "holder", h.Cluster, "kind", noun, "object", e.Object)
		}
	}
	for _, e := range before {
		if !are[e.names()] {
			r.o.Logger.Info("detaching a cluster: no object names it any more", "cluster", e.Key, "holder", h.Cluster, "kind", noun,
				"object", e.Object)
		}
	}
	r.o.Metrics.Remotes(h.Cluster, noun, len(now))
}
