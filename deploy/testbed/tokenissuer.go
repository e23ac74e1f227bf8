package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
)

// TokenIssuer signs JSON Web Tokens with a key of its own.
type TokenIssuer struct {
	t   testing.TB
	key *ecdsa.PrivateKey
}

// NewTokenIssuer makes the key.
func NewTokenIssuer(t testing.TB) TokenIssuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return TokenIssuer{t, key}
}

// Key is the JSON Web Key that verifies the tokens.
func (i TokenIssuer) Key() string {
	i.t.Helper()
	point, err := i.key.PublicKey.Bytes()
	if err != nil {
		i.t.Fatal(err)
	}
	return fmt.Sprintf(`{"kty":"EC","crv":"P-256","alg":"ES256","x":%q,"y":%q}`, base64url(point[1:33]), base64url(point[33:]))
}

// Token is one with these claims.
func (i TokenIssuer) Token(claims map[string]any) string {
	i.t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	text := base64url([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + base64url(body)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return text + "." + base64url(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
