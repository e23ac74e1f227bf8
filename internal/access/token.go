package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Token is a bearer token. However it is printed, it says nothing.
type Token string

const redacted = "REDACTED"

// Format keeps every verb of fmt from printing what is secret.
func (Token) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, redacted) }

// LogValue keeps slog from it.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps encoders from it.
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// maxToken is the longest token in bytes.
const maxToken = 16 << 10

// claims are those of a token that are looked at before its cluster is asked:
// what cannot be good costs no request. They prove nothing.
type claims struct {
	Audience audience `json:"aud"`
	Expires  float64  `json:"exp"`
	// Subject and the pod tell whom a refusal is counted for.
	Subject    string `json:"sub"`
	Kubernetes struct {
		Pod struct {
			UID string `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// audience is a string or a list of strings.
type audience []string

// UnmarshalJSON is part of json.Unmarshaler.
func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	var all []string
	err := json.Unmarshal(text, &all)
	*a = all
	return err
}

func (c claims) ends() time.Time { return time.Unix(int64(min(c.Expires, 1<<40)), 0) }

// over reports whether the token has expired, as it says itself.
func (c claims) over(now time.Time) bool { return c.Expires > 0 && !now.Before(c.ends()) }

var errNoToken = errors.New("the token is not a service account token: it has not the form of a JSON Web Token")

// read looks at the token without verifying it.
func (t Token) read() (claims, error) {
	parts := strings.Split(string(t), ".")
	if len(t) > maxToken || len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return claims{}, errNoToken
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errNoToken
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return claims{}, errNoToken
	}
	return c, nil
}

// check refuses what its cluster would refuse, too.
func (c claims) check(audiences []string, now time.Time) error {
	switch {
	case c.Expires <= 0:
		return errors.New("the token never expires; mount one that does, with the audience " + quoted(audiences))
	case c.over(now):
		return fmt.Errorf("the token has expired at %s", c.ends().UTC().Format(time.RFC3339))
	case !shares(c.Audience, audiences):
		return fmt.Errorf("the token is not for this hub: mount one with the audience %s", quoted(audiences))
	}
	return nil
}

func quoted(audiences []string) string { return `"` + strings.Join(audiences, `" or "`) + `"` }

func shares(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

// question names a token in a cluster without keeping it.
type question [sha256.Size]byte

func ask(cluster federation.ClusterID, t Token) question {
	return sha256.Sum256([]byte(string(cluster) + "\x00" + string(t)))
}
