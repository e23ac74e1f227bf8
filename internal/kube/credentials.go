package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Credentials is what was rebuilt from the allowed fields of a kubeconfig (S43). Nothing else of the file is kept.
type Credentials struct {
	Context           string
	Server            string // canonical https URL without a trailing slash
	ServerName        string // expected name in the server's certificate; empty: the host of Server
	CA                []byte // PEM; empty: the system's roots
	ClientCertificate []byte // PEM
	ClientKey         Secret // PEM
	Token             Secret

	// Expires is the earliest end of token and client certificate; zero when neither says one (S31).
	Expires time.Time
	// Ignored lists the fields that were read, are harmless and have no effect.
	Ignored []string
}

// Fingerprint changes when anything changes that a connection depends on. It reveals nothing of the values.
func (c *Credentials) Fingerprint() string {
	sum := sha256.New()
	for _, part := range []string{c.Server, c.ServerName, string(c.CA), string(c.ClientCertificate), c.ClientKey.Reveal(), c.Token.Reveal()} {
		_, _ = fmt.Fprintf(sum, "%d:", len(part))
		sum.Write([]byte(part))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
