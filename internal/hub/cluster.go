package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/identity"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/registries"
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

// opener makes a registry; see registries.Cluster.
type opener func(known federation.Identity) (registries.Registry, error)

// running makes what a kind offers a registries.Registry.
type running struct {
	run      func(ctx context.Context, to registries.Sink) error
	activity func() (lastEvent, lastSync time.Time)
}

// Run is part of registries.Registry.
func (r running) Run(ctx context.Context, to registries.Sink) error { return r.run(ctx, to) }

// Activity is part of registries.Active.
func (r running) Activity() (lastEvent, lastSync time.Time) { return r.activity() }

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
	k, err := kindOf(c.Provider)
	if err != nil {
		add("provider", "%w", err)
		return errors.Join(wrong...)
	}
	for _, p := range c.sections() {
		if p != c.Provider {
			add(strings.ToLower(string(p)), "does not belong to a cluster of provider %s", c.Provider)
		}
	}
	if k.section != nil && !k.section(c) {
		add(strings.ToLower(string(c.Provider)), "is missing; provider %s needs it", c.Provider)
	}
	return errors.Join(wrong...)
}

// registry is the cluster as the supervisor takes it. The digest is that of the
// file with its credentials, if it has one.
func (c clusterConfig) registry(with surroundings, digest string) (registries.Cluster, error) {
	k, err := kindOf(c.Provider)
	if err != nil {
		return registries.Cluster{}, err
	}
	depends := c
	depends.Precedence, depends.TrustDomain, depends.Aliases = nil, "", nil
	data, err := json.Marshal(depends)
	if err != nil {
		return registries.Cluster{}, err
	}
	return registries.Cluster{ID: c.ID, Spec: c.spec(), Fingerprint: digestOf(append(data, digest...)), Open: k.open(with, c)}, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// configuredClaims are the clusters of the config file, and the kubeconfigs that they
// name.
func configuredClaims(with surroundings, clusters []clusterConfig) (claims []reconcile.Claim, files []*reconcile.Kubeconfig, err error) {
	taken := map[federation.ClusterID]bool{}
	for _, c := range clusters {
		if c.Provider == federation.Kubernetes && !taken[c.ID] {
			files = append(files, &reconcile.Kubeconfig{ID: c.ID, Path: c.Kubernetes.Kubeconfig, Claim: func(digest string) (reconcile.Claim, error) {
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
		ID: id, Spec: federation.ClusterSpec{Provider: federation.Kubernetes}, Fingerprint: credentials.Fingerprint(),
		Open: func(known federation.Identity) (registries.Registry, error) {
			return s.followKubernetes(clusterConfig{ID: id, Provider: federation.Kubernetes}, credentials, known)
		},
	}
}
