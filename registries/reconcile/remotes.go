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
func (r *Reconciler) Named(holder federation.ClusterID, by attach.Carrier, all []attach.Remote) {
	h := Holder{holder, by}
	r.post(func(in *Inputs) {
		before := in.Remotes[h]
		was, _ := in.entries(h)
		next := Remotes{Asked: true, Read: true, Waiting: before.Waiting}
		for _, remote := range all {
			next.Named = append(next.Named, r.entry(h, remote, before.Named))
		}
		in.Remotes[h] = next
		is, _ := in.entries(h)
		r.logNamed(h, was, is)
	})
}

// Unreadable is part of attach.RemoteTaker. What was named stays.
func (r *Reconciler) Unreadable(holder federation.ClusterID, by attach.Carrier, why string, unasked bool) {
	h := Holder{holder, by}
	r.post(func(in *Inputs) {
		of := in.Remotes[h]
		of.Asked = of.Asked || unasked
		of.Unreadable = why
		r.o.Logger.Warn(fmt.Sprintf("the %s that name clusters are not read; those that were named stay", carriers[by].plural),
			"cluster", holder, "reason", why)
		r.o.Metrics.RemotesUnreadable(holder, carriers[by].noun)
		in.Remotes[h] = of
	})
}

// entry is what an object names, with the claim that it makes. One that says what it
// said before is not read again.
func (r *Reconciler) entry(h Holder, named attach.Remote, before []Entry) Entry {
	sum := sha256.Sum256([]byte(named.Kubeconfig.Reveal() + named.Refused))
	e := Entry{Object: named.Object, Key: named.Key, Digest: hex.EncodeToString(sum[:])}
	for _, old := range before {
		if old.Object == e.Object && old.Key == e.Key && old.Digest == e.Digest {
			return old
		}
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
	return Refuse(id, federation.ClusterSpec{Provider: federation.Kubernetes}, fmt.Sprintf("%s %s of cluster %s: %s", carriers[h.By].noun,
		named.Object, h.Cluster, why))
}

// logNamed tells what the objects of a holder name now, and what no more.
func (r *Reconciler) logNamed(h Holder, before, now []Entry) {
	names := func(all []Entry, e Entry) bool {
		return slices.ContainsFunc(all, func(o Entry) bool { return o.Object == e.Object && o.Key == e.Key })
	}
	noun := carriers[h.By].noun
	for _, e := range now {
		if !names(before, e) {
			r.o.Logger.Info(fmt.Sprintf("attaching a cluster: a %s names it", noun), "cluster", e.Key, "holder", h.Cluster, "object", e.Object)
		}
	}
	for _, e := range before {
		if !names(now, e) {
			r.o.Logger.Info(fmt.Sprintf("detaching a cluster: no %s names it any more", noun), "cluster", e.Key,
				"holder", h.Cluster, "object", e.Object)
		}
	}
	r.o.Metrics.Remotes(h.Cluster, noun, len(now))
}
