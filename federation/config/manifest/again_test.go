package manifest_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/config/manifest"
)

// TestR63ReleasedDocumentsTakeLittleMore than the text of the file, of which they hold no
// copy. The documents of a large apply took fourteen times as much at its peak.
func TestR63ReleasedDocumentsTakeLittleMore(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text,
			"apiVersion: v1\nkind: A\nmetadata: {name: a%d, labels: {team: shop}}\nspec:\n  hosts: [a%d.example.com]\n  endpoints:\n", i, i)
		for j := range 3 {
			fmt.Fprintf(&text, "  - {address: 203.0.113.%d, labels: {version: v1}, locality: eu/a}\n", j)
		}
		text.WriteString("---\n")
	}
	data := text.String()
	before := live()
	var all []manifest.Document
	problems := manifest.Each("f.yaml", data, manifest.Limits{}, func(d manifest.Document) { all = append(all, d.Released()) })
	if len(problems) > 0 || len(all) != 2000 {
		t.Fatal(len(all), problems)
	}
	held := live() - before
	t.Logf("%d documents of %d bytes hold %d", len(all), len(data), held)
	if most := len(data); held > most {
		t.Errorf("released documents of %d bytes hold %d, more than %d", len(data), held, most)
	}
	runtime.KeepAlive(all)
	runtime.KeepAlive(data)
}

func live() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestR63ReleasedDocumentsAreReadAgain as they were, places included; items of lists
// and JSON are not released.
func TestR63ReleasedDocumentsAreReadAgain(t *testing.T) {
	text := "# first\n\nkind: A\nmetadata: {name: a}\n--- # second\n  {kind: B,\n   metadata: {name: é}}\n---\nkind: AList\nitems:\n- kind: A\n  size: 1\n- kind: A\n---\n{\"kind\": \"J\"} {\"kind\": \"K\"}\n---\n\nkind: C\nspec:\n  hosts:\n  - x\n"
	documents, problems := manifest.Parse("f.yaml", []byte(text), manifest.Limits{})
	if len(problems) > 0 || len(documents) != 7 {
		t.Fatal(len(documents), problems)
	}
	released := 0
	for _, d := range documents {
		r := d.Released()
		if r.Value == nil {
			released++
		}
		if again := r.Again(); !reflect.DeepEqual(again, d) {
			t.Errorf("document %d is %+v, was %+v", d.Index, again, d)
		}
	}
	if released != 3 {
		t.Errorf("%d documents were released, want 3", released)
	}
}
