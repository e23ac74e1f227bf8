package xds

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"maps"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// SecretRef names a secret as a proxy of a namespace of a cluster means it.
type SecretRef struct {
	Cluster     federation.ClusterID
	Namespace   string
	Name        string
	Authorities bool // those that sign the certificates of callers, not the server's own certificate
	// Workload is the SPIFFE ID of the proxy whose own secret is meant, and Node
	// its ID; empty: a credential of a gateway is.
	Workload string
	Node     string
}

// Secret is key material as it is now.
type Secret struct {
	Fingerprint string // another for other content
	Material    envoy.KeyMaterial
}

// Secrets gives what listeners refer to. Its methods must not block.
type Secrets interface {
	// Follow keeps the secret up to date until done is called.
	Follow(ref SecretRef) (done func())
	// Secret is the secret as it is now; false: there is none that can be used.
	Secret(ref SecretRef) (Secret, bool)
	// Changed is closed when a secret becomes another after the call.
	Changed() <-chan struct{}
}

// mayHaveSecrets tells that what the stream carries is for a client that proved
// by a certificate who it is, or that is on this machine and may open the hub's
// socket.
func (s *Server) mayHaveSecrets(ctx context.Context, c Caller) bool {
	p, ok := peer.FromContext(ctx)
	if !ok || s.options.Secrets == nil {
		return false
	}
	if s.options.Access != nil && c.Certified {
		return true
	}
	if secure, is := p.AuthInfo.(credentials.TLSInfo); is {
		return s.options.Access == nil && len(secure.State.VerifiedChains) > 0
	}
	return s.options.SecretsOnSocket && p.Addr.Network() == "unix"
}

// secretSource gives a stream the secrets that the listeners of its own node
// refer to, and no others. It holds fingerprints, never what is secret. It is
// for one goroutine.
type secretSource struct {
	node      envoy.Node
	workload  string  // SPIFFE ID; empty: the node has no secrets of its own
	secrets   Secrets // nil: the stream may have none
	listeners []source
	version   uint64
	log       changeLog
	known     map[string]*resource // of secrets that exist
	followed  map[string]func()    // whatever is referred to
	asked     map[string]bool      // of the node's own, which are made for those who ask
}

func newSecretSource(node envoy.Node, workload string) *secretSource {
	return &secretSource{
		node: node, workload: workload,
		known: map[string]*resource{}, followed: map[string]func(){}, asked: map[string]bool{},
	}
}

// ask notes that the node wants secrets of its own.
func (s *secretSource) ask(names []string) {
	for _, name := range names {
		if s.secrets != nil && s.workload != "" && envoy.IsOwn(name) && !s.asked[name] {
			s.asked[name] = true
			s.look(name, s.version+1)
		}
	}
}

// sync brings the source up to the snapshot and to the secrets as they are.
func (s *secretSource) sync(snapshot *federation.Snapshot) uint64 {
	if s.secrets == nil {
		return 0
	}
	referred := maps.Clone(s.asked)
	for _, g := range s.listeners {
		g.sync(snapshot)
		for _, name := range g.list() {
			if r := g.get(name); r != nil {
				for _, secret := range r.refs.secrets {
					referred[secret] = referred[secret] || !envoy.IsOwn(secret)
				}
			}
		}
	}
	next := s.version + 1
	for name, done := range s.followed {
		if !referred[name] {
			done()
			delete(s.followed, name)
			s.set(name, nil, next)
		}
	}
	for name, wanted := range referred {
		if wanted {
			s.look(name, next)
		}
	}
	return s.version
}

// prepare is part of source: a look costs little.
func (*secretSource) prepare([]string) {}

// look takes up a secret as it is now.
func (s *secretSource) look(name string, next uint64) {
	ref, ok := s.ref(name)
	if !ok {
		return
	}
	if s.followed[name] == nil {
		s.followed[name] = s.secrets.Follow(ref)
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
	if delete(s.known, name); now != nil {
		s.known[name] = now
	}
	s.version = next
	s.log.add(next, name)
}

// ref is what the node means by the name.
func (s *secretSource) ref(name string) (SecretRef, bool) {
	if envoy.IsOwn(name) {
		return SecretRef{
			Cluster: s.node.Cluster, Namespace: s.node.Namespace, Workload: s.workload, Node: s.node.ID, Authorities: name == envoy.OwnRoots,
		}, s.workload != ""
	}
	credential, authorities, ok := envoy.ParseSecretName(name)
	return SecretRef{Cluster: s.node.Cluster, Namespace: s.node.Namespace, Name: credential, Authorities: authorities}, ok
}

func (s *secretSource) get(name string) *resource { return s.known[name] }

func (s *secretSource) list() []string { return nil } // there is no wildcard

func (s *secretSource) since(version uint64) ([]logEntry, uint64, bool) {
	changed, ok := s.log.since(version)
	return changed, s.version, ok
}

// allows tells that the node's listeners refer to the name.
func (s *secretSource) allows(name string) bool { return s.followed[name] != nil }

func (s *secretSource) close() {
	for name, done := range s.followed {
		done()
		delete(s.followed, name)
	}
}

// openSecrets returns the one source of secrets that the stream has, over the
// listeners that the latest configuration has for the node.
func (st *stream) openSecrets() []source {
	if st.secrets == nil {
		st.secrets = newSecretSource(st.node, st.workload)
		if st.trusted {
			st.secrets.secrets = st.server.options.Secrets
		}
	}
	keys := st.groupsOf(envoy.SecretType)
	st.secrets.listeners = st.acquire(envoy.SecretType, keys)
	return []source{st.secrets}
}

// renew takes up that secrets changed.
func (st *stream) renew() {
	st.renewed = st.server.options.Secrets.Changed()
	st.session.renew(time.Now())
}

// lateResource is a resource whose bytes are fetched when it is sent.
func lateResource(name, fingerprint string) *resource {
	sum := sha256.Sum256([]byte(name + "\x00" + fingerprint))
	return &resource{
		name: name, version: fingerprint, late: true,
		hash: digest{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])},
	}
}

// reveal returns the response with the bytes of its secrets, which are in no
// other place. A secret that has become another since, or that was to be put
// back, is left out: the client keeps what it has, and what is new follows.
func (st *stream) reveal(r *response) *response {
	if r.kind != envoy.SecretType {
		return r
	}
	out := *r
	out.resources = nil
	for _, late := range r.resources {
		ref, ok := st.secrets.ref(late.name)
		if !ok || !st.secrets.allows(late.name) {
			continue
		}
		secret, ok := st.server.options.Secrets.Secret(ref)
		if !ok || secret.Fingerprint != late.version {
			continue
		}
		full, err := newResource(r.kind, late.name, envoy.NewSecret(late.name, secret.Material))
		if err != nil {
			st.log.Error("leaving a secret out: it cannot be serialised", slog.String("name", late.name)) // the error may quote it
			continue
		}
		full.version = late.version
		setHeads(full)
		out.resources = append(out.resources, full)
	}
	return &out
}

// maxNoted bounds the names that a stream remembers to have been refused.
const maxNoted = 1000

// noteRefused counts the names that are asked for and not the node's own; each
// once.
func (st *stream) noteRefused(names []string) {
	for _, name := range names {
		if _, noted := st.refused[name]; noted || st.secrets.allows(name) || name == everything || len(st.refused) >= maxNoted {
			continue
		}
		if st.refused[name] = struct{}{}; len(st.refused) == 1 {
			st.log.Warn("a proxy asks for a secret that it may not have; it is answered as if there were none",
				slog.String("name", printable(name)), slog.Bool("trusted", st.secrets.secrets != nil))
		}
		st.server.options.Metrics.Count(SecretRefused, envoy.SecretType)
	}
}
