package kubernetes

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// link is what the registry knows of its connection, and makes its status.
type link struct {
	explain   func(error) string
	synced    bool // the first full edit was passed on
	probe     error
	trouble   [kinds]error
	following [kinds]bool
	said      federation.RegistryStatus
}

// follow sets the state in which one kind is followed. Trouble stays known until it is followed again.
func (l *link) follow(e followed) {
	l.following[e.kind] = e.err == nil
	if e.err == nil || !listwatch.Interrupted(e.err) {
		l.trouble[e.kind] = e.err
	}
}

// probed takes the end of a probe. Its trouble explains that of the kinds.
func (l *link) probed(err error) {
	l.probe = err
	if err != nil {
		clear(l.trouble[:])
	}
}

// strange reports whether what answers is not, or not any more, what was followed:
// nothing of it is trusted, and an operator must know.
func (l *link) strange(err error) bool {
	return listwatch.Untrusted(err) || l.synced && apierrors.IsNotFound(err)
}

// frozen reports whether nothing that comes is passed on.
func (l *link) frozen() bool { return l.strange(l.worst()) }

func (l *link) follows() bool {
	for _, f := range l.following {
		if !f {
			return false
		}
	}
	return l.probe == nil
}

// status returns the status, and false if it was said before. While the
// registry catches up after trouble the trouble is still said.
func (l *link) status() (federation.RegistryStatus, bool) {
	now := l.said
	err := l.worst()
	switch {
	case listwatch.Untrusted(err):
		now = federation.RegistryStatus{Phase: federation.Held, Message: err.Error()}
	case err != nil && l.strange(err):
		now = federation.RegistryStatus{Phase: federation.Held, Message: listwatch.Message(err, l.explain) +
			"; it did before: nothing of it is used until it does again, or an operator confirms the cluster"}
	case err != nil && !l.synced && (listwatch.Definite(err) || listwatch.Limited(err)):
		now = federation.RegistryStatus{Phase: federation.Failed, Message: listwatch.Message(err, l.explain)}
	case err != nil:
		now = federation.RegistryStatus{Phase: federation.Stale, Message: listwatch.Message(err, l.explain)}
	case !l.synced:
		now = federation.RegistryStatus{Phase: federation.Syncing}
	case l.follows():
		now = federation.RegistryStatus{Phase: federation.Ready}
	}
	if now == l.said {
		return now, false
	}
	l.said = now
	return now, true
}

// worst is the probe's trouble, else the first definite refusal, else the first
// trouble.
func (l *link) worst() error {
	if l.probe != nil {
		return l.probe
	}
	var first error
	for _, err := range l.trouble {
		if listwatch.Definite(err) || listwatch.Limited(err) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}
