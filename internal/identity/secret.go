// Package identity keeps the certificates and keys that the hub sends to proxies: it
// reads them from files and from Secrets of clusters, checks them, and notices when they
// are replaced.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Ref names a secret as a proxy of a namespace of a cluster means it.
type Ref struct {
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

// String is for messages.
func (r Ref) String() string {
	if r.Authorities && !strings.HasSuffix(r.Name, authoritySuffix) {
		return r.Name + authoritySuffix
	}
	return r.Name
}

// Secret is key material that was found to be usable.
type Secret struct {
	Fingerprint string // another for other content
	Material    Material
	Expires     time.Time // of the first certificate that does
}

// Material is PEM. However it is printed, it says nothing.
type Material struct {
	Chain, Key  []byte // of a server
	Authorities []byte
	CRL         []byte // what they revoked
	// Bundles are the authorities of each trust domain, where there are several.
	Bundles map[string][]byte
}

const redacted = "REDACTED"

// Format keeps every verb of fmt from printing what is secret.
func (Material) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, redacted) }

// LogValue keeps slog from it.
func (Material) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps encoders from it.
func (Material) MarshalText() ([]byte, error) { return []byte(redacted), nil }

func (m Material) fingerprint() string {
	h := sha256.New()
	parts := [][]byte{m.Chain, m.Key, m.Authorities}
	if len(m.CRL) > 0 {
		parts = append(parts, m.CRL)
	}
	for _, domain := range slices.Sorted(maps.Keys(m.Bundles)) {
		parts = append(parts, []byte(domain), m.Bundles[domain])
	}
	for _, part := range parts {
		sum := sha256.Sum256(part)
		_, _ = h.Write(sum[:]) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// authoritySuffix ends the name of the Secret with the authorities of a credential
// apart from its certificate.
const authoritySuffix = "-cacert"
