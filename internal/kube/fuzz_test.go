package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// FuzzParse looks for inputs that panic, that take long, or whose refusal repeats a secret.
func FuzzParse(f *testing.F) {
	key := ecKey(f)
	for _, seed := range []string{
		simple, withUser("exec: {command: x}"), withServer("https://[fe80::1%25eth0]"), pairFields(valid(f, key), keyPEM(f, key)),
		"a: &a [*a]", "{", "- ? :", "---\n---\n", "\xef\xbb\xbf", strings.Repeat("[", 2000), simple + "? [a]\n: b\n",
		withUser("token: " + jwt(f, map[string]any{"exp": 1})), "clusters: [1, null, {name: 1}]\nusers: {}\ncontexts: x\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := testbed.UsedCPU(t)
		credentials, err := Parse(data, ParseOptions{Now: testNow})
		if took := testbed.UsedCPU(t) - before; took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		if err == nil {
			if !strings.HasPrefix(credentials.Server, "https://") || credentials.Token.Empty() && credentials.ClientKey.Empty() {
				t.Errorf("accepted %+v", credentials)
			}
			return
		}
		var refusal *Refusal
		if credentials != nil || !errors.As(err, &refusal) || len(refusal.Findings) == 0 {
			t.Errorf("got %v, %v", credentials, err)
		}
		if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
			t.Errorf("the error holds control characters: %q", err)
		}
	})
}
