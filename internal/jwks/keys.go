// Package jwks reads the keys by which tokens of requests are verified, and says where a rule has
// them. It fetches nothing.
package jwks

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// key is a JSON Web Key as Envoy reads it.
type key struct {
	Kty    string   `json:"kty"`
	Kid    string   `json:"kid,omitempty"`
	Alg    string   `json:"alg,omitempty"`
	Use    string   `json:"use,omitempty"`
	KeyOps []string `json:"key_ops,omitempty"`
	N      string   `json:"n,omitempty"`
	E      string   `json:"e,omitempty"`
	Crv    string   `json:"crv,omitempty"`
	X      string   `json:"x,omitempty"`
	Y      string   `json:"y,omitempty"`
	K      string   `json:"k,omitempty"`
}

// NoKeys is why a set has no key that proxies can use.
type NoKeys struct{ Why error }

func (e NoKeys) Error() string { return e.Why.Error() }

// Unwrap is why.
func (e NoKeys) Unwrap() error { return e.Why }

var errNone = errors.New("it has no keys")

// Keys are the keys of a JSON Web Key Set that proxies can use, as a set. Envoy refuses a listener
// whose set has none, so a set without any is an error.
func Keys(text string) (string, error) { return KeysUpTo(text, 0) }

// KeysUpTo is Keys, and refuses a set that has more keys, whether they can be used or not; 0: any number.
func KeysUpTo(text string, most int) (string, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return "", fmt.Errorf("it is not a JSON Web Key Set: %w", err)
	}
	if most > 0 && len(set.Keys) > most {
		return "", fmt.Errorf("it has more than %d keys", most)
	}
	if set.Keys == nil {
		return "", errNone // it is some other JSON
	}
	return usable(set.Keys)
}

// usable is a set of the keys that can be used.
func usable(keys []json.RawMessage) (string, error) {
	var good struct {
		Keys []key `json:"keys"`
	}
	why := errNone
	for _, raw := range keys {
		var k key
		err := json.Unmarshal(raw, &k)
		err = cmp.Or(err, k.usable())
		if err != nil {
			why = fmt.Errorf("none of its keys can be used: %w", err)
			continue
		}
		good.Keys = append(good.Keys, k)
	}
	if len(good.Keys) == 0 {
		return "", NoKeys{why}
	}
	out, err := json.Marshal(good)
	return string(out), err
}

// algorithms are those of each type of keys.
var algorithms = map[string][]string{
	"RSA": {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"},
	"oct": {"HS256", "HS384", "HS512"},
	"OKP": {"EdDSA"},
}

type curve struct {
	elliptic.Curve
	alg string
}

var curves = map[string]curve{"P-256": {elliptic.P256(), "ES256"}, "P-384": {elliptic.P384(), "ES384"}, "P-521": {elliptic.P521(), "ES512"}}

func (k key) usable() error {
	if k.Use != "" && k.Use != "sig" || len(k.KeyOps) > 0 && !slices.Contains(k.KeyOps, "verify") {
		return errors.New("it is not for signatures")
	}
	known := algorithms[k.Kty]
	if k.Kty == "EC" {
		known = []string{curves[cmp.Or(k.Crv, "P-256")].alg}
	}
	if k.Alg != "" && !slices.Contains(known, k.Alg) {
		return fmt.Errorf("alg %q is not supported for kty %q", k.Alg, k.Kty)
	}
	const least, most = 1024 / 8, 8192 / 8 // bytes of a modulus
	switch k.Kty {
	case "RSA":
		if n, e := bytesOf(k.N), bytesOf(k.E); len(n) < least || len(n) > most || n[len(n)-1]%2 == 0 || len(e) == 0 ||
			len(e) > 4 || e[len(e)-1]%2 == 0 {
			return errors.New("n and e are not those of an RSA key")
		}
	case "EC":
		c, ok := curves[cmp.Or(k.Crv, "P-256")]
		if !ok {
			return fmt.Errorf("crv %q is not supported", k.Crv)
		}
		x, y := bytesOf(k.X), bytesOf(k.Y)
		if size := (c.Params().BitSize + 7) / 8; len(x) != size || len(y) != size {
			return errors.New("x and y are not of that curve")
		}
		_, err := ecdsa.ParseUncompressedPublicKey(c.Curve, slices.Concat([]byte{4}, x, y))
		return err
	case "oct":
		if len(bytesOf(k.K)) == 0 {
			return errors.New("k is empty")
		}
	case "OKP":
		if k.Crv != "Ed25519" || len(bytesOf(k.X)) != ed25519.PublicKeySize {
			return errors.New("it is not a key of Ed25519")
		}
	default:
		return fmt.Errorf("kty %q is not supported", k.Kty)
	}
	return nil
}

// bytesOf decodes a value; nil: it is not Base64url.
func bytesOf(text string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
