package kube

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

const maxToken = 16 << 10

// token applies the rule of B-K14: one trailing newline is cut off; what remains is 1 to 16,384 visible ASCII characters.
// When it is a JWT that says when it ends, that time is returned, too.
func token(raw, field string, now time.Time, found *findings) (Secret, time.Time) {
	value := strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r")
	switch {
	case value == "":
		found.add(CodeToken, field, "must not be empty")
		return Secret{}, time.Time{}
	case len(value) > maxToken:
		found.add(CodeToken, field, fmt.Sprintf("has more than %d bytes", maxToken))
		return Secret{}, time.Time{}
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		found.add(CodeToken, field, "holds spaces, newlines or other characters that no token has")
		return Secret{}, time.Time{}
	}
	notBefore, expires := lifetime(value)
	if !expires.IsZero() && !now.Before(expires) {
		found.add(CodeExpired, field, "the token expired at "+expires.UTC().Format(time.RFC3339)+"; issue a new one")
	}
	if !notBefore.IsZero() && now.Before(notBefore) {
		found.add(CodeNotYetValid, field, "the token is valid from "+notBefore.UTC().Format(time.RFC3339)+"; check both clocks")
	}
	return NewSecret(value), expires
}

// lifetime reads nbf and exp of a JWT without verifying it; zero for anything else.
func lifetime(value string) (notBefore, expires time.Time) {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return time.Time{}, time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, time.Time{}
	}
	var claims struct {
		NotBefore *float64 `json:"nbf"`
		Expires   *float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return time.Time{}, time.Time{}
	}
	return instant(claims.NotBefore), instant(claims.Expires)
}

func instant(seconds *float64) time.Time {
	const year9999 = 253402300799
	if seconds == nil {
		return time.Time{}
	}
	return time.Unix(int64(math.Max(1, math.Min(*seconds, year9999))), 0)
}
