package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/file"
	"isthmus.dev/isthmus/federation/config/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loaded is the schemas; compiling them takes longer than the tests.
var loaded = sync.OnceValues(func() (*schema.Set, error) { return schema.Load() })

// schemaAlone admits what the schemas do, without the rules of kinds.
type schemaAlone struct{ *schema.Set }

func (s schemaAlone) Admit(wanted map[string]any) (schema.Admitted, []schema.Problem) {
	object, problems := s.Take(wanted, nil)
	return schema.Admitted{Object: object}, problems
}

func options(t testing.TB, dir string) file.Options {
	t.Helper()
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []federation.Kind
	for _, k := range set.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	return file.Options{
		Dir: dir, Kinds: kinds, Schema: schemaAlone{set}, Debounce: 20 * time.Millisecond,
		Poll: 100 * time.Millisecond, Hold: time.Second,
	}
}

// folder is a folder of manifests that a source follows.
type folder struct {
	*configtest.Recorder
	t   *testing.T
	dir string
}

func follow(t *testing.T, dir string) *folder {
	t.Helper()
	recorder, _ := configtest.Listen(t, file.New(options(t, dir)))
	return &folder{recorder, t, dir}
}

// put writes a file in one step.
func put(t *testing.T, path, content string) {
	t.Helper()
	half := filepath.Join(filepath.Dir(path), ".half")
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(half, []byte(content), 0o600))
	must(t, os.Rename(half, path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *folder) put(name, content string) {
	f.t.Helper()
	put(f.t, filepath.Join(f.dir, name), content)
}

func (f *folder) remove(name string) { f.t.Helper(); must(f.t, os.Remove(filepath.Join(f.dir, name))) }

// objects waits until exactly these are given, as NAME=ADDRESS sorted by name.
func (f *folder) objects(want string) configtest.Seen {
	f.t.Helper()
	return f.Wait(f.t, "objects "+want, func(s configtest.Seen) bool { return len(s.Updates) > 0 && listed(s) == want })
}

// trouble waits for a problem of that code and returns all there are.
func (f *folder) trouble(code string) configtest.Seen {
	f.t.Helper()
	return f.Wait(f.t, "problem "+code, func(s configtest.Seen) bool { return slices.Contains(strings.Fields(s.Codes()), code) })
}

func (f *folder) well() configtest.Seen {
	f.t.Helper()
	return f.Wait(f.t, "no problem", func(s configtest.Seen) bool { return len(s.Problems) == 0 && len(s.Updates) > 0 })
}

func listed(s configtest.Seen) string {
	var all []string
	for key, o := range s.Objects {
		_, address, _ := strings.Cut(string(o.Manifest), `"address":"192.0.2.`)
		address, _, _ = strings.Cut(address, `"`)
		all = append(all, key.Name+"="+address)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// entry is a WorkloadEntry whose address ends with n.
func entry(name string, n int) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: %s, namespace: shop}\nspec: {address: 192.0.2.%d}\n---\n", name, n)
}
