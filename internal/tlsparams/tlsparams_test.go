package tlsparams_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/internal/tlsparams"
)

func TestR27ParametersThatEnvoyAccepts(t *testing.T) {
	colons := strings.TrimSuffix(strings.Repeat("aB:", 32), ":")
	for _, c := range []struct {
		is   func(string) bool
		text string
		want bool
	}{
		{tlsparams.IsCipherSuite, "ECDHE-RSA-AES128-GCM-SHA256", true},
		{tlsparams.IsCipherSuite, "TLS_AES_128_GCM_SHA256", false},
		{tlsparams.IsCipherSuite, "", false},
		{tlsparams.IsCipherSuite, "[AES128-SHA|AES256-SHA]", true},
		{tlsparams.IsCipherSuite, "[AES128-SHA|NOPE]", false},
		{tlsparams.IsCipherSuite, "[]", false},
		{tlsparams.IsCertificateHash, strings.Repeat("aB", 32), true},
		{tlsparams.IsCertificateHash, colons, true},
		{tlsparams.IsCertificateHash, strings.Replace(colons, "aB:aB", "aBa:B", 1), false},
		{tlsparams.IsCertificateHash, strings.Repeat("ab", 31), false},
		{tlsparams.IsCertificateHash, strings.Repeat("zz", 32), false},
		{tlsparams.IsKeyHash, strings.Repeat("A", 43) + "=", true},
		{tlsparams.IsKeyHash, strings.Repeat("A", 44), false},
		{tlsparams.IsKeyHash, "abc", false},
	} {
		if got := c.is(c.text); got != c.want {
			t.Errorf("%q: %t, want %t", c.text, got, c.want)
		}
	}
}
