package seal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/internal/seal"
)

const place = "store|c1|uid|kubeconfig|1"

func open(t *testing.T, path string) *seal.Keys {
	t.Helper()
	keys, err := seal.OpenKeys(path, true)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func sealed(t *testing.T, keys *seal.Keys, secret string) []byte {
	t.Helper()
	got, err := keys.Seal([]byte(secret), place)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestASealedSecretIsOpenedAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	kept := sealed(t, open(t, path), "hunter2")
	if bytes.Contains(kept, []byte("hunter2")) {
		t.Error("the sealed text contains the secret")
	}
	again, err := seal.OpenKeys(path, false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Open(kept, place)
	if err != nil || string(got) != "hunter2" {
		t.Errorf("opened %q, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestEqualSecretsAreSealedDifferently(t *testing.T) {
	keys := open(t, filepath.Join(t.TempDir(), "seal.key"))
	if bytes.Equal(sealed(t, keys, "same"), sealed(t, keys, "same")) {
		t.Error("two secrets that are equal can be told to be")
	}
}

// TestBE3 is the bad-input rule on sealed values: none is opened, and the reason
// says which case it is.
func TestBE3(t *testing.T) {
	dir := t.TempDir()
	keys, others := open(t, filepath.Join(dir, "seal.key")), open(t, filepath.Join(dir, "other.key"))
	good := sealed(t, keys, "hunter2")
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	wrapped := bytes.Clone(good)
	wrapped[40] ^= 1
	cases := map[string]struct {
		value []byte
		place string
		want  error
	}{
		"bit flip":                     {flipped, place, seal.ErrTampered},
		"bit flip in the data key":     {wrapped, place, seal.ErrTampered},
		"truncated":                    {good[:len(good)-5], place, seal.ErrTampered},
		"swapped between clusters":     {good, "store|c2|uid|kubeconfig|1", seal.ErrTampered},
		"an old version rolled back":   {good, "store|c1|uid|kubeconfig|2", seal.ErrTampered},
		"key id unknown":               {sealed(t, others, "hunter2"), place, seal.ErrUnknownKey},
		"empty":                        {nil, place, seal.ErrForeign},
		"plain text":                   {[]byte("hunter2, and a little more text"), place, seal.ErrForeign},
		"of a newer version":           {[]byte(strings.Replace(string(good), "/1\n", "/2\n", 1)), place, seal.ErrForeign},
		"nothing but the form's start": {good[:len("isthmus-sealed/1\n")+6], place, seal.ErrForeign},
	}
	for name, c := range cases {
		got, err := keys.Open(c.value, c.place)
		if !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: opened %q with %v; want %v", name, got, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats the secret: %v", name, err)
		}
	}
}

func TestRotationOfTheKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	keys, replica := open(t, path), open(t, path)
	old := sealed(t, keys, "hunter2")
	first := keys.Newest()
	if err := keys.Rotate(); err != nil {
		t.Fatal(err)
	}
	fresh := sealed(t, keys, "hunter2")
	if id, err := seal.KeyID(fresh); err != nil || id != keys.Newest() || id == first {
		t.Errorf("sealed with key %s (%v); the newest is %s, the first was %s", id, err, keys.Newest(), first)
	}
	if _, err := keys.Open(old, place); err != nil {
		t.Errorf("what was sealed before the rotation: %v", err)
	}
	if _, err := replica.Open(fresh, place); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("before it read the file again, the other process: %v", err)
	}
	if changed, err := replica.Reload(); !changed || err != nil {
		t.Errorf("reload: %v, %v", changed, err)
	}
	if _, err := replica.Open(fresh, place); err != nil {
		t.Error(err)
	}
	if changed, err := replica.Reload(); changed || err != nil {
		t.Errorf("a reload of the same file: %v, %v", changed, err)
	}
	if err := keys.Drop(keys.Newest()); err == nil {
		t.Error("the newest key was dropped")
	}
	if err := keys.Drop(first); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Open(old, place); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("with its key dropped: %v", err)
	}
	if got := keys.IDs(); len(got) != 1 || got[0] != keys.Newest() {
		t.Errorf("keys %v", got)
	}
}

func TestAKeyFileThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open(t, filepath.Join(dir, "good.key"))
	good, err := os.ReadFile(filepath.Join(dir, "good.key"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ path, want string }{
		"missing":        {filepath.Join(dir, "missing.key"), "missing"},
		"of the world":   {write("world.key", string(good), 0o644), "chmod 600"},
		"empty":          {write("empty.key", "", 0o600), "no keys"},
		"cut short":      {write("short.key", string(good[:len(good)/2]), 0o600), "no keys"},
		"something else": {write("else.key", `{"password":"hunter2"}`, 0o600), "no keys"},
		"a folder":       {dir, "regular file"},
	}
	for name, c := range cases {
		_, err := seal.OpenKeys(c.path, false)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v; want the path and %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats the file: %v", name, err)
		}
	}
}

func TestSeveralThatStartAtOnceMakeOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	var starting sync.WaitGroup
	names := make([]string, 8)
	for i := range names {
		starting.Go(func() {
			if keys, err := seal.OpenKeys(path, true); err == nil {
				names[i] = keys.Newest()
			}
		})
	}
	starting.Wait()
	for _, name := range names {
		if name == "" || name != names[0] {
			t.Fatalf("the keys are %v; want one", names)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

func FuzzOpen(f *testing.F) {
	keys, err := seal.OpenKeys(filepath.Join(f.TempDir(), "seal.key"), true)
	if err != nil {
		f.Fatal(err)
	}
	good, err := keys.Seal([]byte("hunter2"), place)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("isthmus-sealed/1\n"))
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := keys.Open(value, place)
		if err == nil && !bytes.Equal(value, good) {
			t.Errorf("something that was never sealed opens as %q", got)
		}
		if err != nil && !errors.Is(err, seal.ErrForeign) && !errors.Is(err, seal.ErrTampered) && !errors.Is(err, seal.ErrUnknownKey) {
			t.Errorf("an error of another sort: %v", err)
		}
	})
}
