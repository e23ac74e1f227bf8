package keyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBY6SecretsBelongToTheHub(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func() string {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(info); err != nil {
			return err.Error()
		}
		return ""
	}
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o640: "", 0o660: "0660", 0o644: "0644",
		0o604: "0604", 0o602: "0602",
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got := check(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("mode %04o: %q", mode, got)
		}
	}
	for name, c := range map[string]struct {
		owner, self int
		refused     bool
	}{
		"the hub's own":           {1337, 1337, false},
		"root's":                  {0, 1337, false},
		"another's":               {1000, 1337, true},
		"another's, hub as root":  {1000, 0, true},
		"root's, the hub as root": {0, 0, false},
	} {
		if err := owner(c.owner, c.self); (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "number 1000") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
