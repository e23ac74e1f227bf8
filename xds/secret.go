package xds

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"slices"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// SecretRef names a secret as a proxy of a namespace of a cluster means it.
type SecretRef struct {
	Cluster     federation.ClusterID
	Namespace   string
	Name        string
	Authorities bool // those that sign the certificates of the other side, not the own certificate
	// Workload is the SPIFFE ID of the proxy whose own secret is meant, and Node
	// its ID; empty: a credential of a Gateway or a DestinationRule is.
	Workload string
	Node     string
	// Granted is set for a Secret of another namespace that a source of configuration
	// granted to the proxy: of its cluster, never a file.
	Granted bool
}

// Secret is key material as it is now.
type Secret struct {
	Fingerprint string // another for other content
	Material    transport.KeyMaterial
}

// Secrets gives what listeners and clusters refer to. Its methods must not block.
type Secrets interface {
	// Follow keeps the secret up to date until done is called. proven is when who
	// follows it last proved who it is; nil: it does so all the time.
	Follow(ref SecretRef, proven func() time.Time) (done func())
	// Secret is the secret as it is now; false: there is none that can be used.
	Secret(ref SecretRef) (Secret, bool)
	// Changed is closed when a secret changes after the call.
	Changed() <-chan struct{}
}

// mayHaveSecrets reports whether what the stream carries is for a client that proved
// over TLS who it is, or that is on this machine and may open the hub's socket. A
// token is enough: for one, the certificate service signs whatever key its bearer
// has.
func (s *Server) mayHaveSecrets(ctx context.Context, c Caller) bool {
	p, ok := peer.FromContext(ctx)
	if !ok || s.options.Secrets == nil {
		return false
	}
	if s.options.Access != nil && c.Proven {
		return true
	}
	if secure, is := p.AuthInfo.(credentials.TLSInfo); is {
		return s.options.Access == nil && len(secure.State.VerifiedChains) > 0
	}
	return s.options.SecretsOnSocket && p.Addr.Network() == "unix"
}

// openSecrets returns the one source of secrets that the stream has, over the
// listeners and clusters that the latest configuration has for the node.
func (st *stream) openSecrets() []source {
	if st.secrets == nil {
		st.secrets = newSecretSource(st.client.node, st.client.workload)
		if last := st.client.caller.LastProof; last != nil {
			st.secrets.proven = func() time.Time { return last(st.client.node) }
		}
		if st.client.trusted {
			st.secrets.secrets = st.server.options.Secrets
		}
	}
	st.secrets.credentials = st.hasCredentials()
	st.secrets.read(st.acquire(envoy.SecretType, groupKeysOf(st.view, envoy.SecretType)), st.view.Certificate())
	return []source{st.secrets}
}

// reopenSecrets is openSecrets if they may differ from those of the stream, else nil.
func reopenSecrets(st *stream) []source {
	if slices.Equal(groupKeysOf(st.view, envoy.SecretType), st.held[envoy.SecretType]) && st.secretsUnchanged() {
		return nil
	}
	return st.openSecrets()
}

// secretsUnchanged reports whether the node may have what it had, beside what its resources refer to.
func (st *stream) secretsUnchanged() bool {
	return st.secrets.credentials == st.hasCredentials() && st.secrets.certificate == st.view.Certificate()
}

// hasCredentials reports whether the stream may have the key material of Gateways and
// DestinationRules, not only the names of files.
func (st *stream) hasCredentials() bool { return st.client.trusted && st.view.HasCredentials() }

// renew notes that secrets changed.
func (st *stream) renew(now time.Time) {
	st.renewed = st.server.options.Secrets.Changed()
	if st.secrets != nil {
		st.secrets.recheck = true
	}
	if st.roots != nil {
		st.roots.recheck = true
	}
	st.state.renew(now)
}

// lateResource is a resource whose bytes are fetched when it is sent.
func lateResource(name, fingerprint string) *resource {
	sum := sha256.Sum256([]byte(name + "\x00" + fingerprint))
	return &resource{
		name: name, version: fingerprint, late: true,
		hash: digest{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])},
	}
}

// reveal returns the response with the bytes of its secrets, which are nowhere else.
// A secret that has changed since, or that was to be put back, is excluded: the client
// keeps the one that it has, and the new one follows.
func (st *stream) reveal(r *response) *response {
	if !r.kind.Has(envoy.Confidential) {
		return r
	}
	out := *r
	out.resources = nil
	for _, late := range r.resources {
		secret := st.revealed(late)
		if secret == nil {
			continue
		}
		full, err := newResource(r.kind, late.name, secret)
		if err != nil {
			st.client.log.Error("leaving a secret out: it cannot be serialised", slog.String("name", late.name)) // the error may quote it
			continue
		}
		full.version = late.version
		setHeads(full)
		out.resources = append(out.resources, full)
	}
	return &out
}

// revealed is the secret itself; nil: it is excluded.
func (st *stream) revealed(late *resource) *tlsv3.Secret {
	ref, ok := st.secrets.ref(late.name)
	switch {
	case !st.secrets.allows(late.name):
		return nil
	case transport.IsFile(late.name):
		return transport.NewFileSecret(late.name)
	case !ok:
		return nil
	}
	secret, ok := st.server.options.Secrets.Secret(ref)
	if !ok || secret.Fingerprint != late.version {
		return nil
	}
	return transport.NewSecret(late.name, secret.Material)
}

// maxNoted bounds the names that a stream remembers to have been refused. Each is as
// long as the caller likes.
const maxNoted = 32

// noteRefused counts the names that are asked for and not the node's own; each
// once.
func (st *stream) noteRefused(names []string) {
	for _, name := range names {
		if _, noted := st.refused[name]; noted || st.secrets.allows(name) || name == everything || len(st.refused) >= maxNoted {
			continue
		}
		st.refused[name] = struct{}{}
		if len(st.refused) == 1 {
			st.client.provoke("a proxy asks for a secret that it may not have; it is answered as if there were none",
				slog.String("name", printable(name)), slog.Bool("trusted", st.secrets.secrets != nil))
		}
		st.server.options.Metrics.Count(SecretRefused, envoy.SecretType)
	}
}
