package kinds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/kube"
)

// Spec is what the merge law needs to know of the cluster.
func (c Cluster) Spec() federation.ClusterSpec {
	s := federation.ClusterSpec{
		Provider: c.Provider, Network: c.Network, TrustDomain: c.TrustDomain,
		Aliases: federation.NewAliases(c.Aliases),
	}
	if c.Precedence != nil {
		s.Precedence = *c.Precedence
	}
	return s
}

// Check returns what is wrong with the cluster's lines in the config file.
func (c Cluster) Check(field string) error {
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
	if strings.ContainsFunc(c.TrustDomain, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-._", r) }) ||
		len(c.TrustDomain) > 253 {
		add("trustDomain", "%q is not a trust domain; use lower-case letters, digits, -, . and _", c.TrustDomain)
	}
	if _, err := c.Limits.Read(field + ".limits"); err != nil {
		wrong = append(wrong, err)
	}
	k, err := Hub{}.Of(c.Provider)
	if err != nil {
		add("provider", "%w", err)
		return errors.Join(wrong...)
	}
	for _, p := range attachable() {
		if p != c.Provider && c.Section(p) != nil {
			add(p.Section(), "does not belong to a cluster of provider %s", c.Provider)
		}
	}
	if k.HasSection && c.Section(c.Provider) == nil {
		add(c.Provider.Section(), "is missing; provider %s needs it", c.Provider)
	}
	return errors.Join(wrong...)
}

// Fingerprint is a digest of all that a registry depends on: the config, and what says
// which credentials it uses.
func (c Cluster) Fingerprint(credentials string) (string, error) {
	c.Precedence, c.TrustDomain, c.Aliases = nil, "", nil
	data, err := yaml.Marshal(c)
	sum := sha256.Sum256(append(data, credentials...))
	return hex.EncodeToString(sum[:]), err
}

// OfObject is what the object says in the words of the config file.
func OfObject(object *config.Object) (Cluster, error) {
	var m struct {
		Spec Cluster `json:"spec"`
	}
	err := json.Unmarshal(object.Manifest, &m)
	m.Spec.ID = federation.ClusterID(object.Key.Name)
	return m.Spec, err
}
