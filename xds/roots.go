package xds

import (
	"encoding/pem"
	"iter"
	"log/slog"
	"maps"
	"slices"

	meshapi "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/pemtext"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// rootsName is the name of the one resource; the message has none.
const rootsName = "proxyConfig"

// rootSource gives Istio's agent the roots of all trust domains, which it adds to those that
// it serves to its proxy. They follow the client's own trust bundle, not the snapshot. It
// is for one goroutine.
type rootSource struct {
	secrets Secrets // nil: the stream may not have them
	ref     SecretRef
	log     *slog.Logger
	done    func()
	recheck bool   // the bundles may have changed
	content string // fingerprint of the bundles
	known   *resource
	version uint64
	changes changeLog
}

// newRootSource has the roots for the client, if it may have secrets: they are for its trust
// domain, which it has proven.
func newRootSource(c *xdsClient) *rootSource {
	s := &rootSource{log: c.log, recheck: true, done: func() {}, ref: SecretRef{
		Cluster: c.node.Cluster, Namespace: c.node.Namespace, Workload: c.workload, Node: c.node.ID, Authorities: true,
	}}
	if c.trusted && c.workload != "" {
		s.secrets = c.server.options.Secrets
		s.done = s.secrets.Follow(s.ref, nil)
	}
	return s
}

// openRoots returns the trust bundles of the stream.
func openRoots(st *stream) []source {
	if st.roots == nil {
		st.roots = newRootSource(&st.client)
	}
	return []source{st.roots}
}

// sync reads the bundles again if they may have changed.
func (s *rootSource) sync(*federation.Snapshot) uint64 {
	if !s.recheck || s.secrets == nil {
		return s.version
	}
	s.recheck = false
	secret, exists := s.secrets.Secret(s.ref)
	if !exists || secret.Fingerprint == s.content {
		return s.version // the roots that were sent stay
	}
	made, err := newResource(envoy.ProxyConfigType, rootsName, proxyConfigOf(secret.Material))
	if err != nil {
		s.log.Error("leaving the trust bundles out: they cannot be serialised", slog.Any("err", err))
		return s.version
	}
	s.content, s.known = secret.Fingerprint, made
	s.version++
	s.changes.add(s.version, made.name)
	return s.version
}

// proxyConfigOf has each root once, in the order of the trust domains.
func proxyConfigOf(m transport.KeyMaterial) *meshapi.ProxyConfig {
	texts := [][]byte{m.Authorities}
	for _, domain := range slices.Sorted(maps.Keys(m.Bundles)) {
		texts = append(texts, m.Bundles[domain])
	}
	made := &meshapi.ProxyConfig{}
	for _, text := range texts {
		for block := range pemtext.Blocks(text) {
			if root := string(pem.EncodeToMemory(block)); !slices.Contains(made.CaCertificatesPem, root) {
				made.CaCertificatesPem = append(made.CaCertificatesPem, root)
			}
		}
	}
	return made
}

func (s *rootSource) get(name string) *resource {
	if s.known == nil || name != s.known.name {
		return nil
	}
	return s.known
}

func (s *rootSource) list() []string {
	if s.known == nil {
		return nil
	}
	return []string{s.known.name}
}

func (s *rootSource) since(version uint64) ([]logEntry, uint64, bool) {
	changed, ok := s.changes.since(version)
	return changed, s.version, ok
}

// prepare is part of source: a look costs little.
func (*rootSource) prepare(iter.Seq[string]) {}

func (*rootSource) number() fleet.Group { return 0 }

func (*rootSource) accepted(string) *resource { return nil }

func (*rootSource) causes(string, []string) map[string][]federation.ObjectKey { return nil }

func (s *rootSource) close() { s.done() }
