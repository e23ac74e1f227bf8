package file_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/file"
)

func TestFilesComeChangeAndGo(t *testing.T) {
	f := follow(t, t.TempDir())
	f.objects("")
	f.put("a.yaml", entry("a", 1)+entry("b", 2))
	first := f.objects("a=1 b=2")
	f.put("deep/er/c.json",
		`{"apiVersion": "networking.istio.io/v1beta1", "kind": "WorkloadEntry", "metadata": {"name": "c"}, "spec": {"address": "192.0.2.3"}}`)
	f.put("notes.txt", "no manifest")
	f.put(".hidden.yaml", entry("hidden", 1))
	f.put(".git/x.yaml", entry("hidden", 1))
	seen := f.objects("a=1 b=2 c=3")
	for key, o := range seen.Objects {
		if key.Name == "c" && (key.Namespace != "default" || o.APIVersion != "networking.istio.io/v1" || o.Revision <= first.Revision()) {
			t.Errorf("c is %+v", o)
		}
		if !strings.Contains(string(o.Manifest), `"uid":"`) || strings.Contains(string(o.Manifest), "creationTimestamp") {
			t.Errorf("the metadata of %s: %s", key, o.Manifest)
		}
	}
	f.put("a.yaml", entry("b", 4))
	seen = f.objects("b=4 c=3")
	if last := seen.Updates[len(seen.Updates)-1]; len(last.Events) != 2 {
		t.Errorf("a changed file came as %d events, want one update of two", len(last.Events))
	}
	must(t, os.RemoveAll(filepath.Join(f.dir, "deep")))
	f.objects("b=4")
	f.remove("a.yaml")
	f.objects("")
	f.well()
}

func TestObjectsAreTheSameOnEveryHub(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	put(t, filepath.Join(one, "a.yaml"), entry("a", 1))
	put(t, filepath.Join(other, "sub/z.yml"), entry("a", 1))
	a, b := follow(t, one).objects("a=1"), follow(t, other).objects("a=1")
	for key, o := range a.Objects {
		if string(o.Manifest) != string(b.Objects[key].Manifest) {
			t.Errorf("%s and %s", o.Manifest, b.Objects[key].Manifest)
		}
	}
}

func TestBY3FilesWithoutObjectsKeepWhatTheySaid(t *testing.T) {
	for name, content := range map[string]string{
		"Empty": "", "Comments": "# nothing\n", "Markers": "---\n---\n", "OneOfThreeBad": entry("a", 7) + "kind: Nonsense\n---\n" + entry("d", 8),
		"UnknownField": strings.ReplaceAll(entry("a", 7), "address", "where"), "OtherVersion": strings.ReplaceAll(entry("a", 7), "/v1", "/v9"),
	} {
		t.Run(name, func(t *testing.T) {
			f := follow(t, t.TempDir())
			f.put("a.yaml", entry("a", 1)+entry("b", 2))
			f.put("c.yaml", entry("c", 3))
			before := f.objects("a=1 b=2 c=3")
			f.put("a.yaml", content)
			f.Wait(t, "a problem", func(s configtest.Seen) bool { return len(s.Problems) > 0 })
			f.put("c.yaml", entry("c", 4))
			seen := f.objects("a=1 b=2 c=4")
			if p := seen.Problems[0]; p.Object != "a.yaml" || !strings.HasSuffix(p.Message, "what the file said before stays") {
				t.Errorf("the problem is %+v", p)
			} else if p.Code == "EMPTY" && !strings.Contains(p.Message, "delete the file;") {
				t.Errorf("the problem does not say what to do: %s", p.Message)
			}
			for key, o := range before.Objects {
				if key.Name != "c" && seen.Objects[key] != o {
					t.Errorf("%s was given again", key)
				}
			}
			f.put("a.yaml", entry("a", 5))
			f.objects("a=5 c=4")
			f.well()
			must(t, os.Remove(filepath.Join(f.dir, "a.yaml")))
			f.objects("c=4")
		})
	}
}

func TestBY4HalfWrittenFileKeepsLastGood(t *testing.T) {
	f := follow(t, t.TempDir())
	f.put("mesh/a.yaml", entry("a", 1))
	f.objects("a=1")
	half := entry("a", 2) +
		"apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: b, namespace: shop}\nspec: {address: [\n"
	f.put("mesh/a.yaml", half)
	p := f.trouble("SYNTAX").Problems[0]
	if p.Object != "mesh/a.yaml" || !strings.Contains(p.Message, "line ") {
		t.Errorf("the problem does not name file and line: %+v", p)
	}
	f.put("mesh/a.yaml", strings.ReplaceAll(entry("a", 2), "address: 192", "where: 192"))
	p = f.trouble("UNKNOWN_FIELD").Problems[0]
	if p.Field != "spec.where" || !strings.Contains(p.Message, "line 4, ") {
		t.Errorf("the problem does not name line and field: %+v", p)
	}
	f.objects("a=1")
	f.put("mesh/a.yaml", entry("a", 2)+entry("b", 3))
	f.objects("a=2 b=3")
	f.well()
}

func TestBY4VanishedFolderIsNoDeletion(t *testing.T) {
	f := follow(t, filepath.Join(t.TempDir(), "mesh"))
	p := f.trouble("UNREADABLE").Problems[0]
	if p.Object != "" || !strings.Contains(p.Message, f.dir) || len(f.Now().Updates) > 0 {
		t.Fatalf("a missing folder gives %+v and %d updates", p, len(f.Now().Updates))
	}
	f.put("a.yaml", entry("a", 1))
	f.objects("a=1")
	f.well()
	must(t, os.Rename(f.dir, f.dir+"2"))
	f.trouble("UNREADABLE")
	must(t, os.Mkdir(f.dir, 0o700))
	p = f.Wait(t, "the other folder", func(s configtest.Seen) bool {
		return len(s.Problems) == 1 && strings.Contains(s.Problems[0].Message, "another one than before")
	}).Problems[0]
	f.objects("a=1")
	f.put("b.yaml", entry("a", 1)+entry("b", 2))
	f.objects("a=1 b=2")
	f.well()
	if p.Code != "UNREADABLE" {
		t.Errorf("the code is %s", p.Code)
	}
}

// swap replaces all files at once, as Kubernetes does for a ConfigMap.
func swap(t *testing.T, dir, version string, files map[string]string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, version), 0o700))
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(dir, version, name), []byte(content), 0o600))
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	must(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	for name := range files {
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // it may be there
	}
	if old == "" {
		return
	}
	gone, err := os.ReadDir(filepath.Join(dir, old))
	must(t, err)
	for _, e := range gone {
		if _, stays := files[e.Name()]; !stays {
			must(t, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	must(t, os.RemoveAll(filepath.Join(dir, old)))
}

func TestBY4ConfigMapSwapIsOneUpdate(t *testing.T) {
	o := options(t, t.TempDir())
	o.Debounce = time.Second // a swap takes several steps, between which the machine may stop
	recorder, _ := configtest.Listen(t, file.New(o))
	f := &folder{recorder, t, o.Dir}
	f.objects("")
	swap(t, f.dir, "..1", map[string]string{"a.yaml": entry("a", 1), "b.yaml": entry("b", 1), "moves.yaml": entry("c", 1)})
	before := f.objects("a=1 b=1 c=1")
	swap(t, f.dir, "..2", map[string]string{"a.yaml": entry("a", 2), "b.yaml": entry("b", 2), "moved.yaml": entry("c", 2)})
	after := f.objects("a=2 b=2 c=2")
	if n := len(after.Updates) - len(before.Updates); n != 1 {
		t.Errorf("the swap came as %d updates: %+v", n, after.Updates[len(before.Updates):])
	}
	f.well()
}

func TestBY5OnlyRegularFilesBelowTheFolder(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "secret.yaml"), entry("secret", 1))
	f := follow(t, t.TempDir())
	f.put("good.yaml", entry("good", 1))
	f.put("sub/inner.yaml", entry("inner", 2))
	at := func(name string) string { return filepath.Join(f.dir, name) }
	must(t, os.Symlink(filepath.Join(outside, "secret.yaml"), at("absolute.yaml")))
	must(t, os.Symlink("../"+filepath.Base(outside)+"/secret.yaml", at("escape.yaml")))
	must(t, os.Symlink(outside, at("folder")))
	must(t, os.Symlink("/dev/zero", at("zero.yaml")))
	must(t, os.Symlink("loop.yaml", at("loop.yaml")))
	must(t, os.Symlink("..", at("sub/above")))
	must(t, syscall.Mkfifo(at("pipe.yaml"), 0o600))
	listener, err := net.Listen("unix", at("socket.yaml"))
	must(t, err)
	defer listener.Close()
	seen := f.Wait(t, "eight refusals", func(s configtest.Seen) bool { return len(s.Problems) == 8 && listed(s) == "good=1 inner=2" })
	for _, p := range seen.Problems {
		if p.Code != "NOT_A_FILE" || p.Object == "" || strings.Contains(p.Message, "secret") {
			t.Errorf("%+v", p)
		}
	}
}

func TestBY5TooLargeFilesAreNamed(t *testing.T) {
	o := options(t, t.TempDir())
	o.Manifest.Bytes, o.Bytes, o.Files = 1000, 5000, 10
	recorder, _ := configtest.Listen(t, file.New(o))
	f := &folder{recorder, t, o.Dir}
	f.put("a.yaml", entry("a", 1))
	f.objects("a=1")
	f.put("a.yaml", entry("a", 2)+strings.Repeat("#", 1000))
	f.trouble("TOO_LARGE")
	f.put("b.yaml", strings.Repeat("#", 6000)) // affects itself only
	f.put("c.yaml", entry("c", 1))
	f.objects("a=1 c=1")
	for i := range 5 {
		f.put(fmt.Sprintf("d%d.yaml", i), strings.Repeat("#", 900))
	}
	if p := f.trouble("UNREADABLE").Problems[0]; !strings.Contains(p.Message, "5000 bytes") {
		t.Errorf("the problem is %+v", p)
	}
	for _, name := range []string{"b.yaml", "c.yaml", "d0.yaml", "d1.yaml", "d2.yaml", "d3.yaml", "d4.yaml"} {
		f.remove(name)
	}
	f.put("a.yaml", entry("a", 3))
	f.objects("a=3")
	f.well()
}

func TestBY7ObjectInTwoFilesIsRefusedInBoth(t *testing.T) {
	f := follow(t, t.TempDir())
	f.put("a.yaml", entry("a", 1))
	f.put("x.yaml", entry("x", 1))
	f.put("y.yaml", entry("x", 2))
	twice := func(key string, places ...string) func(configtest.Seen) bool {
		return func(s configtest.Seen) bool {
			for _, p := range s.Problems {
				if p.Code == "DUPLICATE_OBJECT" && strings.HasSuffix(p.Object, key) && strings.Contains(p.Message, strings.Join(places, " and in ")) {
					return true
				}
			}
			return false
		}
	}
	f.Wait(t, "x to be refused", twice("x", "x.yaml", "y.yaml"))
	f.put("sub/b.yaml", entry("a", 2)+entry("b", 2))
	f.Wait(t, "a to be refused", twice("a", "a.yaml", "sub/b.yaml"))
	f.objects("a=1 b=2") // what was in force stays; of x there was nothing
	f.remove("a.yaml")
	f.remove("x.yaml")
	f.objects("a=2 b=2 x=2")
	f.well()
	f.put("y.yaml", entry("x", 3)+entry("x", 4))
	f.Wait(t, "x twice in one file", twice("x", "y.yaml", "y.yaml"))
	f.objects("a=2 b=2 x=2")
}

func TestMassRemovalIsHeld(t *testing.T) {
	f := follow(t, t.TempDir())
	var many, want string
	for i := range 30 {
		name := string(rune('a'+i/10)) + string(rune('0'+i%10))
		many, want = many+entry(name, 1), want+" "+name+"=1"
	}
	f.put("many.yaml", many)
	f.objects(strings.TrimSpace(want))
	f.put("few.yaml", entry("z", 1))
	f.objects(strings.TrimSpace(want) + " z=1")
	f.remove("many.yaml")
	f.objects("z=1") // it has been missing for long enough
	troubles := f.well().Troubles
	held := troubles[len(troubles)-2]
	if held.Objects != 31 || held.Problems[0].Code != "REMOVAL_HELD" || !strings.Contains(held.Problems[0].Message, "30 of 31") {
		t.Errorf("%+v", troubles)
	}
}

var _ config.Source = (*file.Source)(nil)
