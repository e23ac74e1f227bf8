package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/identity"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
	"isthmus.dev/isthmus/registries/reconcile"
)

// surroundings are what every kind of registry may use of the hub.
type surroundings struct {
	policy  federation.AddressPolicy
	metrics *metrics.Metrics
	secrets *identity.Secrets
	who     *identities
	remotes *attach.Remotes               // nil: Secrets of the cluster name no clusters
	holders map[federation.ClusterID]bool // whose Secrets may
	limits  federation.Limits
	usages  *usages
	known   knownClusters // nil: only the data folder knows who clusters of files are
	logger  *slog.Logger
}

// host is what the hub offers to registries of all kinds.
func (s surroundings) host() provider.Host {
	return provider.Host{Policy: s.policy, Limits: s.limits, Logger: s.logger, Used: s.usages.of, Ended: s.usages.forget}
}

func (s surroundings) countConsul(id federation.ClusterID, request string) {
	s.metrics.Consul.Request(id, request)
}

// opener makes a registry; see registries.Cluster.
type opener func(known federation.Identity) (registries.Registry, error)

// open is the opener of a cluster whose config names its credentials, if it needs any.
func (s surroundings) open(k provider.Kind, c clusterConfig) opener {
	open := opener(func(known federation.Identity) (registries.Registry, error) { return k.Open(s.cluster(c, known)) })
	if k.Identified {
		return s.remember(c.ID, open)
	}
	return open
}

func (s surroundings) cluster(c clusterConfig, known federation.Identity) provider.Cluster {
	return provider.Cluster{ID: c.ID, Network: c.Network, Limits: s.limitsOf(c), Section: c.section(c.Provider), Known: known}
}

// check returns what is wrong with the cluster's lines in the config file.
func (c clusterConfig) check(field string) error {
	var wrong []error
	add := func(name, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s.%s: "+format, append([]any{field, name}, args...)...))
	}
	if err := kube.ValidateClusterID(string(c.ID)); err != nil {
		add("id", "%q: %w", c.ID, err)
	}
	if c.Precedence != nil && *c.Precedence < 1 {
		add("precedence", "must be 1 or more; the lower number wins")
	}
	if strings.ContainsFunc(string(c.Network), func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		add("network", "has a space or a control character")
	}
	if strings.ContainsFunc(c.TrustDomain, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-._", r) }) || len(c.TrustDomain) > 253 {
		add("trustDomain", "%q is none; it has lower-case letters, digits, -, . and _", c.TrustDomain)
	}
	if _, err := c.Limits.limits(field + ".limits"); err != nil {
		wrong = append(wrong, err)
	}
	k, err := surroundings{}.kindOf(c.Provider)
	if err != nil {
		add("provider", "%w", err)
		return errors.Join(wrong...)
	}
	for _, p := range attachable() {
		if p != c.Provider && c.section(p) != nil {
			add(sectionName(p), "does not belong to a cluster of provider %s", c.Provider)
		}
	}
	if k.HasSection && c.section(c.Provider) == nil {
		add(sectionName(c.Provider), "is missing; provider %s needs it", c.Provider)
	}
	return errors.Join(wrong...)
}

// registry is the cluster as the supervisor takes it. The digest is that of the
// file with its credentials, if it has one.
func (c clusterConfig) registry(with surroundings, digest string) (registries.Cluster, error) {
	k, err := with.kindOf(c.Provider)
	if err != nil {
		return registries.Cluster{}, err
	}
	fingerprint, err := c.fingerprint(digest)
	return registries.Cluster{ID: c.ID, Spec: c.spec(), Identified: k.Identified, Fingerprint: fingerprint, Open: with.open(k, c)}, err
}

// fingerprint is a digest of all that a registry depends on: the config, and what says
// which credentials it uses.
func (c clusterConfig) fingerprint(credentials string) (string, error) {
	c.Precedence, c.TrustDomain, c.Aliases = nil, "", nil
	data, err := yaml.Marshal(c)
	sum := sha256.Sum256(append(data, credentials...))
	return hex.EncodeToString(sum[:]), err
}

// configuredClaims are the clusters of the config file, and the kubeconfigs that they
// name.
func configuredClaims(with surroundings, clusters []clusterConfig) (claims []reconcile.Claim, files []*reconcile.Kubeconfig, err error) {
	taken := map[federation.ClusterID]bool{}
	for _, c := range clusters {
		if k, err := with.kindOf(c.Provider); err == nil && k.File != nil && !taken[c.ID] {
			files = append(files, &reconcile.Kubeconfig{ID: c.ID, Path: k.File(c.section(c.Provider)), Claim: func(digest string) (reconcile.Claim, error) {
				cluster, err := c.registry(with, digest)
				return reconcile.Claim{Cluster: cluster}, err
			}})
		}
		taken[c.ID] = true
		cluster, err := c.registry(with, "")
		if err != nil {
			return nil, nil, err
		}
		claims = append(claims, reconcile.Claim{Cluster: cluster})
	}
	return claims, reconcile.Kubeconfigs(files), nil
}

// folderCluster is a cluster of the watched folder.
func (s surroundings) folderCluster(id federation.ClusterID, credentials *kube.Credentials) registries.Cluster {
	c := s.kubeconfigCluster(id, credentials)
	c.Open = s.remember(id, c.Open)
	return c
}

// kubeconfigCluster is a cluster of which only the kubeconfig is given.
func (s surroundings) kubeconfigCluster(id federation.ClusterID, credentials *kube.Credentials) registries.Cluster {
	return registries.Cluster{
		ID: id, Spec: federation.ClusterSpec{Provider: federation.Kubernetes}, Identified: true, Fingerprint: credentials.Fingerprint(),
		Open: func(known federation.Identity) (registries.Registry, error) {
			return s.kubernetes().Open(s.cluster(clusterConfig{ID: id}, known), credentials)
		},
	}
}
