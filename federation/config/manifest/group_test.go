package manifest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// Texts that are decoded together give what each gives alone: for lines of every sort, in any
// order.
func TestPropertyDocumentsDecodeTogetherAsAlone(t *testing.T) {
	lines := []string{
		"a: b\n", "b: 1\n", "  c: d\n", "- e\n", "  - f: g\n", "h: {i: j, k: [l, m]}\n", "n: |\n", "n: |+\n", "o: >-\n", "  some text\n",
		"\n", "# comment\n", "  # more\n",
		"p: \"q\n", "r\"\n", "s: 't'\n", "u: &v w\n", "x: *v\n", "y: !!str z\n", "? aa\n", ": bb\n", "cc: [\n", "]\n", "}\n", "dd: '\n", "'\n",
		"\uFEFFee: ff\n", "gg: hh\r---\rii: jj\n",
		"kk: ll\u0085mm: nn\n", "oo: \u2028pp\n", "%YAML 1.2\n", "   qq: rr", "ss:\n", "    tt: uu\n", "vv: ww # xx\n", "\tyy: zz\n", "a b\n",
		"\"quoted\": 1\n", "<<: {a: b}\n",
	}
	draw := rapid.SliceOfN(rapid.SampledFrom(lines), 1, 6)
	shape := cmp.Options{cmpopts.IgnoreFields(yaml.Node{}, "HeadComment", "LineComment", "FootComment"), cmpopts.EquateEmpty()}
	together, alone := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		texts := make([]string, rapid.IntRange(1, 3).Draw(t, "texts"))
		for i := range texts {
			texts[i] = strings.Join(draw.Draw(t, "text"), "")
		}
		trees := decodeTogether(texts)
		if trees == nil {
			alone++
			return
		}
		together++
		for i, text := range texts {
			want := decode(text)
			if want.err != nil {
				t.Fatalf("text %d is decoded, alone there is %v", i, want.err)
			}
			if diff := cmp.Diff(want.root.Content, trees[i].root.Content, shape); diff != "" {
				t.Fatalf("text %d (-alone +together): %s", i, diff)
			}
		}
	})
	const many = 500 // fewer draws may miss one of the two
	if together+alone >= many && (together == 0 || alone == 0) {
		t.Errorf("%d were decoded together, %d were not: the test shows nothing", together, alone)
	}
}

// R63: the texts of a file share decoders, whose buffers are several times a usual text.
func TestR63ReadingIsFrugal(t *testing.T) {
	const documents = 200
	var all strings.Builder
	for i := range documents {
		fmt.Fprintf(&all,
			"apiVersion: v1\nkind: A\nmetadata: {name: a%d, labels: {team: shop}}\nspec:\n  hosts: [a%d.example.com]\n  endpoints:\n", i, i)
		for j := range 3 {
			fmt.Fprintf(&all, "  - {address: 203.0.113.%d, labels: {version: v1}, locality: eu/a}\n", j)
		}
		all.WriteString("---\n")
	}
	data := all.String()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if problems := Each("f.yaml", data, Limits{}, func(Document) {}); len(problems) > 0 {
		t.Fatal(problems)
	}
	runtime.ReadMemStats(&after)
	const most = 30_000 * allowance
	if got := (after.TotalAlloc - before.TotalAlloc) / documents; got > most {
		t.Errorf("reading a document takes %d bytes, at most %d are expected", got, most)
	}
}
