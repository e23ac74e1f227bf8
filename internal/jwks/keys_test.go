package jwks

import (
	"strings"
	"testing"
)

// TestK09KeysThatEnvoyWouldRefuseAreLeftOut: what is left is a set that it accepts.
func TestK09KeysThatEnvoyWouldRefuseAreLeftOut(t *testing.T) {
	const oct, ed = `{"kty":"oct","k":"c2VjcmV0"}`, `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	rsa := strings.TrimSuffix(strings.TrimPrefix(LostKey, `{"keys":[`), `]}`)
	for name, c := range map[string]struct {
		text string
		want int // keys
	}{
		"none":                {`{"keys":[]}`, 0},
		"no text":             {``, 0},
		"no set":              {`[]`, 0},
		"null":                {`{"keys":[null]}`, 0},
		"types":               {`{"keys":[` + rsa + `,` + oct + `,` + ed + `]}`, 3},
		"unknown type":        {`{"keys":[{"kty":"what"},` + oct + `]}`, 1},
		"a number as a text":  {`{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":7},` + ed + `]}`, 1},
		"another algorithm":   {`{"keys":[{"kty":"oct","k":"c2VjcmV0","alg":"RS256"}]}`, 0},
		"for encryption":      {`{"keys":[{"kty":"oct","k":"c2VjcmV0","use":"enc"},{"kty":"oct","k":"c2VjcmV0","key_ops":["sign"]}]}`, 0},
		"a short modulus":     {`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, 0},
		"not of the curve":    {`{"keys":[{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}]}`, 0},
		"an unknown curve":    {`{"keys":[{"kty":"EC","crv":"secp256k1","x":"AAAA","y":"AAAA"}]}`, 0},
		"not Base64url":       {`{"keys":[{"kty":"oct","k":"c2+/"}]}`, 0},
		"fields nobody reads": {`{"keys":[{"kty":"oct","k":"c2VjcmV0","x5c":[1],"more":{}}],"more":1}`, 1},
	} {
		got, err := Keys(c.text)
		if n := strings.Count(got, `"kty"`); n != c.want || (err == nil) != (n > 0) {
			t.Errorf("%s: %d keys, %v; want %d", name, n, err, c.want)
		}
	}
}
