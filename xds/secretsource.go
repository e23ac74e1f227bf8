package xds

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// secretSource gives a stream the secrets that the listeners and clusters of its own
// node refer to, and no others. It holds fingerprints, never what is secret. It is
// for one goroutine.
type secretSource struct {
	node        envoy.Node
	workload    string           // SPIFFE ID; empty: the node has no secrets of its own
	proven      func() time.Time // when the node last proved who it is; nil: it does so all the time
	secrets     Secrets          // nil: the stream may have none but those that are files on the proxy
	credentials bool             // of Gateways and DestinationRules: the stream may have them
	referring   []referringCursor
	certificate string         // that the node presents to backends
	counts      map[string]int // how many resources refer to a secret
	recheck     bool           // what is followed may have changed, or may be referred to no more
	version     uint64
	log         changeLog
	known       map[string]*resource // of secrets that exist
	followed    map[string]func()    // whatever is referred to
	asked       map[string]bool      // of the node's own, which are made on request
}

// fileFingerprint is that of all secrets that are files: their names are all that
// there is to know.
const fileFingerprint = "files"

// referringCursor is a group of listeners or clusters and the position up to which it was read.
type referringCursor struct {
	cursor
	refs map[string][]string // secrets by resource
}

func newSecretSource(node envoy.Node, workload string) *secretSource {
	return &secretSource{
		node: node, workload: workload, counts: map[string]int{},
		known: map[string]*resource{}, followed: map[string]func(){}, asked: map[string]bool{},
	}
}

// read has the source follow these resources from now on, and the certificate for backends of the
// node's Gateway; empty: there is none. References of clusters do not count for secrets of other
// namespaces, so that no EnvoyFilter gets one.
func (s *secretSource) read(referring []source, certificate string) {
	clear(s.counts)
	s.referring, s.certificate, s.recheck = nil, certificate, true
	for _, group := range referring {
		s.referring = append(s.referring, referringCursor{cursor: cursor{source: group}, refs: map[string][]string{}})
	}
}

// ask notes that the node wants secrets of its own.
func (s *secretSource) ask(names []string) {
	for _, name := range names {
		if s.secrets != nil && s.workload != "" && transport.IsOwn(name) && !s.asked[name] {
			s.asked[name] = true
			s.reload(name, s.version+1)
		}
	}
}

// sync brings the source up to the snapshot and to the secrets as they are. It
// looks at the resources that changed, and at the secrets to which they refer.
func (s *secretSource) sync(snapshot *federation.Snapshot) uint64 {
	touched := map[string]bool{}
	for i := range s.referring {
		s.collect(&s.referring[i], snapshot, touched)
	}
	if s.recheck {
		s.recheck = false
		if s.certificate != "" {
			touched[s.certificate] = true
		}
		for name := range s.followed {
			touched[name] = true
		}
	}
	next := s.version + 1
	for name := range touched {
		s.update(name, next)
	}
	return s.version
}

// collect recounts the references of the resources that changed up to the snapshot.
func (s *secretSource) collect(c *referringCursor, snapshot *federation.Snapshot, touched map[string]bool) {
	version := c.source.sync(snapshot)
	if c.read && version == c.at {
		return
	}
	for _, name := range c.changed(version) {
		var now []string
		if r := c.source.get(name); r != nil {
			now = r.refs.secrets
		}
		for _, secret := range c.refs[name] {
			s.counts[secret]--
			touched[secret] = true
		}
		for _, secret := range now {
			s.counts[secret]++
			touched[secret] = true
		}
		delete(c.refs, name)
		if len(now) > 0 {
			c.refs[name] = now
		}
	}
}

// changed moves the cursor and returns the names that may have changed since, each
// once.
func (c *referringCursor) changed(version uint64) []string {
	names := map[string]bool{}
	changed, at, ok := []logEntry(nil), version, false
	if c.read {
		changed, at, ok = c.source.since(c.at)
	}
	c.at, c.read = at, true
	for _, e := range changed {
		names[e.name] = true
	}
	if !ok {
		for _, name := range c.source.list() {
			names[name] = true
		}
		for name := range c.refs {
			names[name] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// update follows a secret for as long as it is referred to or asked for.
func (s *secretSource) update(name string, next uint64) {
	switch {
	case s.asked[name], (s.counts[name] > 0 || name == s.certificate) && s.serves(name):
		s.reload(name, next)
	case s.followed[name] != nil:
		s.followed[name]()
		delete(s.followed, name)
		s.set(name, nil, next)
	}
}

// serves reports whether the node may have what its resources refer to by that name. Its
// own secrets are made on request.
func (s *secretSource) serves(name string) bool {
	return transport.IsFile(name) || s.secrets != nil && s.credentials && !transport.IsOwn(name)
}

// prepare is part of source: a look costs little.
func (*secretSource) prepare(iter.Seq[string]) {}

// reload reads a secret as it is now.
func (s *secretSource) reload(name string, next uint64) {
	if transport.IsFile(name) {
		if s.followed[name] == nil {
			s.followed[name] = func() {}
			s.set(name, lateResource(name, fileFingerprint), next)
		}
		return
	}
	ref, ok := s.ref(name)
	if !ok {
		return
	}
	if s.followed[name] == nil {
		s.followed[name] = s.secrets.Follow(ref, s.proven)
	}
	secret, exists := s.secrets.Secret(ref)
	switch known := s.known[name]; {
	case !exists:
		s.set(name, nil, next)
	case known == nil || known.version != secret.Fingerprint:
		s.set(name, lateResource(name, secret.Fingerprint), next)
	}
}

func (s *secretSource) set(name string, now *resource, next uint64) {
	if s.known[name] == now {
		return
	}
	delete(s.known, name)
	if now != nil {
		s.known[name] = now
	}
	s.version = next
	s.log.add(next, name)
}

// ref is what the node means by the name.
func (s *secretSource) ref(name string) (SecretRef, bool) {
	if transport.IsOwn(name) {
		return SecretRef{
			Cluster: s.node.Cluster, Namespace: s.node.Namespace, Workload: s.workload, Node: s.node.ID, Authorities: name == transport.OwnRoots,
		}, s.workload != ""
	}
	meant, ok := transport.ParseSecretName(name)
	return SecretRef{
		Cluster: s.node.Cluster, Namespace: cmp.Or(meant.Namespace, s.node.Namespace),
		Granted: meant.Namespace != "", Name: meant.Credential, Authorities: meant.Authorities,
	}, ok
}

func (s *secretSource) get(name string) *resource { return s.known[name] }

func (s *secretSource) list() []string { return nil } // there is no wildcard

func (s *secretSource) since(version uint64) ([]logEntry, uint64, bool) {
	changed, ok := s.log.since(version)
	return changed, s.version, ok
}

// allows reports whether the node's resources refer to the name.
func (s *secretSource) allows(name string) bool { return s.followed[name] != nil }

func (s *secretSource) close() {
	for name, done := range s.followed {
		done()
		delete(s.followed, name)
	}
}
