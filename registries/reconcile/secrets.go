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
func (r *Reconciler) Named(holder federation.ClusterID, all []attach.Remote) {
	r.post(func(in *Inputs) {
		before := in.Secrets[holder]
		next := Secrets{Asked: true, Read: true, Waiting: before.Waiting}
		for _, remote := range all {
			next.Named = append(next.Named, r.entry(holder, remote, before.Named))
		}
		in.Secrets[holder] = next
		was, _ := in.entries(before)
		is, _ := in.entries(next)
		r.logSecrets(holder, was, is)
	})
}

// Unreadable is part of attach.RemoteTaker. What was named stays.
func (r *Reconciler) Unreadable(holder federation.ClusterID, why string, unasked bool) {
	r.post(func(in *Inputs) {
		of := in.Secrets[holder]
		of.Asked = of.Asked || unasked
		if !unasked || len(of.waiting()) > 0 { // most accounts may not read them, and need not
			of.Unreadable = why
			r.o.Logger.Warn("the Secrets that name clusters are not read; those that were named stay", "cluster", holder, "reason", why)
			r.o.Metrics.RemotesUnreadable(holder)
		}
		in.Secrets[holder] = of
	})
}

// entry is an entry of a Secret with the claim that it makes. One that says what it
// said before is not read again.
func (r *Reconciler) entry(holder federation.ClusterID, named attach.Remote, before []Entry) Entry {
	sum := sha256.Sum256([]byte(named.Kubeconfig.Reveal()))
	e := Entry{Secret: named.Secret, Key: named.Key, Digest: hex.EncodeToString(sum[:])}
	for _, old := range before {
		if old.Secret == e.Secret && old.Key == e.Key && old.Digest == e.Digest {
			return old
		}
	}
	id := federation.ClusterID(named.Key)
	credentials, err := kube.Parse([]byte(named.Kubeconfig.Reveal()), r.o.Rules)
	if err != nil {
		e.Claim = Refuse(id, federation.ClusterSpec{Provider: federation.Kubernetes}, fmt.Sprintf("Secret %s of cluster %s: %s", named.Secret, holder, err))
		return e
	}
	e.Claim = Claim{Cluster: r.o.Remote(id, credentials)}
	return e
}

// logSecrets tells what the Secrets of a cluster name now, and what no more.
func (r *Reconciler) logSecrets(holder federation.ClusterID, before, now []Entry) {
	names := func(all []Entry, e Entry) bool {
		return slices.ContainsFunc(all, func(o Entry) bool { return o.Secret == e.Secret && o.Key == e.Key })
	}
	for _, e := range now {
		if !names(before, e) {
			r.o.Logger.Info("attaching a cluster: a Secret names it", "cluster", e.Key, "holder", holder, "secret", e.Secret)
		}
	}
	for _, e := range before {
		if !names(now, e) {
			r.o.Logger.Info("detaching a cluster: no Secret names it any more", "cluster", e.Key, "holder", holder, "secret", e.Secret)
		}
	}
	r.o.Metrics.Remotes(holder, len(now))
}
