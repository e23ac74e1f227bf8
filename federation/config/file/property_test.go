package file

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// lax admits anything.
type lax struct{}

func (lax) Lookup(apiVersion, kind string) (schema.Kind, *schema.Problem) {
	return schema.Kind{Kind: federation.Kind{Group: "example", Name: kind}, Namespaced: true, Storage: apiVersion}, nil
}

func (lax) Admit(wanted map[string]any) (schema.Admitted, []schema.Problem) {
	return schema.Admitted{Object: wanted}, nil
}

// desk is a folder, what the source made of it, and what it should have made.
type desk struct {
	dir   string
	tree  *tree
	now   time.Time
	given map[federation.ObjectKey]*config.Object // by the events
	files map[string]map[string]int               // what each file last said as a whole
	want  map[string]int
}

func (d *desk) write(r *rapid.T) {
	name := rapid.SampledFrom([]string{"a.yaml", "b.yaml", "sub/c.yaml"}).Draw(r, "file")
	path := filepath.Join(d.dir, name)
	if rapid.IntRange(0, 3).Draw(r, "what") == 0 {
		_ = os.Remove(path)
		delete(d.files, name)
		return
	}
	said := rapid.MapOfN(rapid.SampledFrom([]string{"u", "v", "w"}), rapid.IntRange(1, 3), 0, 3).Draw(r, "says")
	broken := rapid.SampledFrom([]string{"", "", "kind: [", "%YAML 1.1"}).Draw(r, "broken")
	var text strings.Builder
	for _, object := range slices.Sorted(maps.Keys(said)) {
		fmt.Fprintf(&text, "apiVersion: example/v1\nkind: Thing\nmetadata: {name: %s, namespace: shop}\nspec: {value: %d}\n---\n",
			object, said[object])
	}
	if err := os.WriteFile(path+".half", []byte(text.String()+broken), 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(path+".half", path); err != nil {
		r.Fatal(err)
	}
	if broken == "" && len(said) > 0 {
		d.files[name] = said
	} else if d.files[name] == nil {
		d.files[name] = map[string]int{}
	}
}

// expect computes what must be given now: what one file alone says; what two
// say stays.
func (d *desk) expect() {
	want := map[string]int{}
	for _, object := range []string{"u", "v", "w"} {
		var values []int
		for _, said := range d.files {
			if v, has := said[object]; has {
				values = append(values, v)
			}
		}
		before, was := d.want[object]
		switch {
		case len(values) == 1:
			want[object] = values[0]
		case len(values) > 1 && was:
			want[object] = before
		}
	}
	d.want = want
}

func (d *desk) look(r *rapid.T) {
	d.now = d.now.Add(d.tree.o.Debounce)
	l, err := list(d.tree.o)
	if err != nil {
		r.Fatal(err)
	}
	defer l.close()
	found, whole, _ := d.tree.read(l, d.now)
	if !whole {
		return
	}
	before := d.tree.given.Revision
	events, _, _ := d.tree.take(found, d.now)
	if len(events) > 0 && d.tree.given.Revision != before+1 {
		r.Fatalf("a change moves the revision from %d to %d", before, d.tree.given.Revision)
	}
	for _, e := range events {
		if d.given[e.Key()] != e.Old || e.New != nil && e.New.Revision != d.tree.given.Revision {
			r.Fatalf("the event %+v does not fit", e)
		}
		d.given[e.Key()] = e.New
		if e.New == nil {
			delete(d.given, e.Key())
		}
	}
}

func (d *desk) got() map[string]int {
	got := map[string]int{}
	for key, o := range d.given {
		var value int
		_, text, _ := strings.Cut(string(o.Manifest), `"value":`)
		if _, err := fmt.Sscan(strings.TrimRight(text, "}"), &value); err != nil {
			value = -1
		}
		got[key.Name] = value
	}
	return got
}

// TestAnyOrderOfChangesGivesWhatTheFilesSay changes a folder in random steps and
// compares what is given with what the rules say.
func TestAnyOrderOfChangesGivesWhatTheFilesSay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "desk")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
			r.Fatal(err)
		}
		o := Options{Dir: dir, Schema: lax{}}
		o.fill()
		d := &desk{
			dir: dir, tree: newTree(o), now: time.Now().Add(time.Hour), given: map[federation.ObjectKey]*config.Object{},
			files: map[string]map[string]int{}, want: map[string]int{},
		}
		for range rapid.IntRange(1, 10).Draw(r, "steps") {
			d.write(r)
			for range 3 {
				d.look(r)
			}
			d.expect()
			if got := d.got(); !maps.Equal(got, d.want) {
				r.Fatalf("given is %v, want %v: the files say %v", got, d.want, d.files)
			}
		}
	})
}
