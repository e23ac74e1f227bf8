package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Values are built as a json.Decoder builds them, and what it refuses is refused: for pieces
// of JSON of every sort, in any order.
func TestPropertyWalksReadAsADecoder(t *testing.T) {
	pieces := []string{
		"{", "}", "[", "]", ",", ":", " ", "\n", `"a"`, `"b":`, `"c\u00e9\"\\":`, `"\\"`, `"\/"`, `"unended`, "1", "-0.5e3", "1e400", "01",
		"true", "false", "null", "tru", "\t", `{"d":[1,{}]}`, `"e":{}`, `"\ud83d\ude00"`, "\x01", `"x\ty"`,
	}
	valid, other := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces"), ""))
		err := checkJSON(data, 1000)
		if !json.Valid(data) {
			other++
			if err == nil {
				t.Fatalf("%q is taken for JSON", data)
			}
			return
		}
		valid++
		if errors.Is(err, errDuplicate) {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		var want any
		if err := decoder.Decode(&want); err != nil {
			t.Fatal(err)
		}
		got, err := (&walk{data}).build()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-decoder +walk): %s", data, diff)
		}
		var whole map[string]json.RawMessage
		if json.Unmarshal(data, &whole) != nil {
			whole = nil
		}
		if diff := cmp.Diff(whole, membersOf(data)); diff != "" {
			t.Fatalf("%q (-encoding/json +walk): %s", data, diff)
		}
	})
	const many = 500 // fewer draws may miss one of the two
	if valid+other >= many && (valid == 0 || other == 0) {
		t.Errorf("%d were valid, %d were not: the test shows nothing", valid, other)
	}
}

// R63: parameters with a long text take the text twice, once while its escapes are read.
func TestR63ParametersTakeLittleMemory(t *testing.T) {
	const size = 4 << 20
	body := []byte(`{"query":"mutation($m: [ManifestInput!]!) { apply(manifests: $m) { revision } }","variables":{"m":[{"data":"` +
		strings.Repeat("a: b\\n", size/6) + `"}]}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	params, fault := fromBody(body, 1000)
	runtime.ReadMemStats(&after)
	if fault != nil || params.Variables["m"] == nil {
		t.Fatal(fault)
	}
	if got := int(after.TotalAlloc - before.TotalAlloc); got > 3*size {
		t.Errorf("reading %d bytes takes %d", size, got)
	}
}
