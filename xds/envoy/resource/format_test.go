package resource

import (
	"errors"
	"strings"
	"testing"
)

// TestG128FormatsHaveAllOperatorsOfEnvoy: formats that teams bring from Istio pass, and a mistake is named.
func TestG128FormatsHaveAllOperatorsOfEnvoy(t *testing.T) {
	refused := func(expression string) error {
		if expression == "no" {
			return errors.New("it is wrong")
		}
		return nil
	}
	for text, wrong := range map[string]string{
		"plain, 100%%": "", "%START_TIME(%s%3f)%": "", "[%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%] %REQ(:METHOD)%": "",
		"%EMIT_TIME% %EMIT_TIME(%s)%": "", "%DOWNSTREAM_PEER_FINGERPRINT_256%": "", "%UPSTREAM_WIRE_BYTES_RECEIVED%": "",
		"%FILTER_STATE(wasm.upstream_peer:PLAIN):20%": "", "%CEL(request.headers['a'])% %TYPED_CEL(response.code):3%": "",
		"a %NO% b": `the operator at "%NO% b" is not supported`, "%PROTOCOL% 100%": `the operator at "%" is not supported`,
		"%START_TIME(%s)% %START_TIME:3%": `the operator at "%START_TIME:3%" is not supported`,
		"%CEL(ok)% %CEL(no)%":             `the expression "no": it is wrong`, "%CEL(a % b)%": "is not supported",
	} {
		err := CheckFormat(text, refused)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", text, err, wrong)
		}
	}
}
