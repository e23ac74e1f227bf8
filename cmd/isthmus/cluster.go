package main

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

// attachConfigured attaches the clusters of the config file. The second and any
// further one of an ID is skipped with a warning and shown at the first.
func attachConfigured(to clusterSources, with surroundings, clusters []clusterConfig) error {
	first := map[federation.ClusterID]int{}
	for i, c := range clusters {
		if at, taken := first[c.ID]; taken {
			field := fmt.Sprintf("clusters[%d].id", i)
			with.logger.Warn("a cluster is skipped: its ID is taken", "cluster", c.ID, "field", field, "holder", fmt.Sprintf("clusters[%d]", at))
			to.supervisor.Problem(c.ID, field, duplicateID(c.ID, field, fmt.Sprintf("clusters[%d]", at)))
			continue
		}
		first[c.ID] = i
		cluster, err := c.registry(with, "")
		if err != nil {
			return err
		}
		to.config.Attach(cluster)
	}
	return nil
}

func duplicateID(id federation.ClusterID, field, by string) *federation.Problem {
	return &federation.Problem{
		Code: "DUPLICATE_CLUSTER_ID", Object: "cluster " + string(id), Field: field,
		Message: fmt.Sprintf("the ID %s is taken by %s; this cluster is skipped, give it another ID", id, by),
	}
}
