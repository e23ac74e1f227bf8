package identities

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/internal/kube"
)

// Config is the settings of the certificate authority and of authentication.
type Config struct {
	TrustDomain    string         `yaml:"trustDomain"`
	CA             string         `yaml:"ca"`
	CADir          string         `yaml:"caDir"`
	CASecret       SecretConfig   `yaml:"caSecret"`
	CertificateTTL string         `yaml:"certificateTTL"`
	MaxProofAge    string         `yaml:"maxProofAge"`
	Overlap        string         `yaml:"overlap"`
	Audiences      []string       `yaml:"audiences"`
	Bundles        []BundleConfig `yaml:"bundles"`
	// DenyFile lists the workloads that get nothing.
	DenyFile string `yaml:"denyFile"`
}

// SecretConfig is the Secret with the signer.
type SecretConfig struct {
	Cluster   federation.ClusterID `yaml:"cluster"`
	Namespace string               `yaml:"namespace"`
	Name      string               `yaml:"name"`
}

// BundleConfig is what else is trusted for a trust domain.
type BundleConfig struct {
	TrustDomain string                 `yaml:"trustDomain"`
	File        string                 `yaml:"file"`
	Clusters    []federation.ClusterID `yaml:"clusters"`
}

// Where the signer comes from.
const (
	caOwn    = "own"
	caFiles  = "files"
	caSecret = "secret"
	caNone   = "none"
)

const (
	defaultTTL      = 24 * time.Hour
	minTTL, maxTTL  = 5 * time.Minute, 90 * 24 * time.Hour
	defaultAudience = "isthmus"
	istioAudience   = "istio-ca" // of the tokens that Istio's injection mounts
)

// Settings are the same, checked.
type Settings struct {
	Config
	policy authority.Policy
}

// Settings checks the configuration.
func (c Config) Settings() (Settings, error) {
	s := Settings{Config: c}
	s.TrustDomain = cmp.Or(c.TrustDomain, federation.DefaultTrustDomain)
	s.CA = cmp.Or(c.CA, caOwn)
	s.CASecret.Namespace, s.CASecret.Name = cmp.Or(c.CASecret.Namespace, "istio-system"), cmp.Or(c.CASecret.Name, "cacerts")
	if len(s.Audiences) == 0 {
		s.Audiences = []string{defaultAudience, istioAudience}
	}
	err := errors.Join(authority.CheckTrustDomain(s.TrustDomain), s.checkCA())
	var ttlErr, overlapErr, proofErr error
	s.policy.Leaf, ttlErr = duration("certificateTTL", c.CertificateTTL, defaultTTL)
	s.policy.Overlap, overlapErr = duration("overlap", c.Overlap, s.policy.Leaf)
	s.policy.Proof, proofErr = duration("maxProofAge", c.MaxProofAge, max(defaultTTL, s.policy.Leaf))
	err = errors.Join(err, ttlErr, overlapErr, proofErr)
	for i, b := range c.Bundles {
		err = errors.Join(err, b.check(i))
	}
	if err != nil {
		return s, fmt.Errorf("identity: %w", err)
	}
	return s, nil
}

// Signs reports whether the hub has a certificate authority.
func (s Settings) Signs() bool { return s.CA != caNone }

func (s Settings) checkCA() error {
	needs := map[string]bool{caOwn: true, caFiles: s.CADir != "", caSecret: s.CASecret.Cluster != "", caNone: true}
	complete, known := needs[s.CA]
	switch {
	case !known:
		return fmt.Errorf("ca %q is not known; use own, files, secret or none", s.CA)
	case !complete && s.CA == caFiles:
		return errors.New("ca files needs caDir, a folder with ca-cert.pem, ca-key.pem and root-cert.pem")
	case !complete:
		return errors.New("ca secret needs caSecret.cluster, the ID of the cluster with the Secret")
	}
	return nil
}

func (b BundleConfig) check(i int) error {
	if b.File == "" {
		return fmt.Errorf("bundles[%d].file is missing", i)
	}
	if err := authority.CheckTrustDomain(b.TrustDomain); err != nil {
		return fmt.Errorf("bundles[%d].trustDomain: %w", i, err)
	}
	for _, c := range b.Clusters {
		if err := kube.ValidateClusterID(string(c)); err != nil {
			return fmt.Errorf("bundles[%d].clusters: %q: %w", i, c, err)
		}
	}
	return nil
}

func duration(field, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < minTTL || d > maxTTL {
		return otherwise, fmt.Errorf("%s %q: use a duration from 5m to 2160h, such as 24h", field, text)
	}
	return d, nil
}
