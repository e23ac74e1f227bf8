package testbed

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// TokenOptions say which token a service account gets.
type TokenOptions struct {
	Namespace, Account string
	Audience           string // Empty: that of the API server itself.
	Pod                string // To which it is bound, if any; the pod must exist.
	PodUID             string
	Seconds            int       // Default 3600; the API server takes 600 and more.
	Ends               time.Time // Non-zero: instead of Seconds, also below 600, or in the past.
}

// ServiceAccountToken makes the account if it is missing, and a token of it, by
// TokenRequest.
func (k *Kube) ServiceAccountToken(options TokenOptions) string {
	k.t.Helper()
	k.Apply(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\n", options.Account, options.Namespace))
	spec := fmt.Sprintf(`"expirationSeconds":%d`, max(options.Seconds, 600))
	if options.Seconds == 0 {
		spec = `"expirationSeconds":3600`
	}
	if options.Audience != "" {
		spec += fmt.Sprintf(`,"audiences":[%q]`, options.Audience)
	}
	if options.Pod != "" {
		spec += fmt.Sprintf(`,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":%q,"uid":%q}`, options.Pod, options.PodUID)
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/serviceaccounts/%s/token", options.Namespace, options.Account)
	answer := k.Do(http.MethodPost, path, []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{`+spec+`}}`))
	if err := answer.failed(); err != nil {
		k.t.Fatalf("making a token of %s/%s: %v", options.Namespace, options.Account, err)
	}
	var made struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	answer.Decode(k.t, &made)
	if options.Ends.IsZero() {
		return made.Status.Token
	}
	token, err := ending(made.Status.Token, options.Ends, k.accounts)
	if err != nil {
		k.t.Fatalf("making a token of %s/%s: %v", options.Namespace, options.Account, err)
	}
	return token
}

// ending is the token with another end, signed by the key of the API server.
func ending(token string, at time.Time, key *ecdsa.PrivateKey) (string, error) {
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", err
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", err
	}
	claims["exp"] = at.Unix()
	payload, err = json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
