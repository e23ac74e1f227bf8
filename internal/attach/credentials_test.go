package attach

import (
	"errors"
	"testing"
)

// TestCredentialsAreKeptAsBefore: what an earlier version sealed is read, whatever the kind
// of the cluster, and what is sealed now is the same text. Another form is refused.
func TestCredentialsAreKeptAsBefore(t *testing.T) {
	for _, kept := range []string{
		`{"credentials":1,"kubeconfig":"k","uid":"u"}`,
		`{"ca":"a","cert":"c","credentials":1,"key":"p","token":"t"}`,
	} {
		c, err := decodeCredentials([]byte(kept))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.encode(); err != nil || string(again) != kept {
			t.Errorf("%s is kept as %s, %v", kept, again, err)
		}
	}
	for _, kept := range []string{`{"credentials":2,"token":"t"}`, `{"token":"t"}`, `{"credentials":1,"token":{}}`, `[`} {
		if _, err := decodeCredentials([]byte(kept)); !errors.Is(err, errDocument) {
			t.Errorf("%s: %v", kept, err)
		}
	}
}
