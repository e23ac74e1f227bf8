package etcd

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// TestR63IndexesAreEncodedInParts: the parts are one JSON document, none is larger than
// a part may be, and they are read to what was written.
func TestR63IndexesAreEncodedInParts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := &index{indexHead: indexHead{
			Revision: rapid.Int64().Draw(rt, "revision"), Previous: rapid.String().Draw(rt, "previous"),
			Note: config.Note{Author: rapid.String().Draw(rt, "author")}, Pasts: rapid.Bool().Draw(rt, "pasts"),
		}}
		long := rapid.SampledFrom([]int{0, 1, partSize / 2, partSize, 3 * partSize}).Draw(rt, "length of a name")
		for i := range rapid.IntRange(0, 5).Draw(rt, "entries") {
			name := rapid.StringN(0, 20, -1).Draw(rt, "name") + string(bytes.Repeat([]byte("n"), long))
			x.Entries = append(x.Entries, entry{Key: federation.ObjectKey{Kind: "A", Name: name}, Offset: i})
		}
		parts, hash, err := x.encode()
		if err != nil {
			rt.Fatal(err)
		}
		var read index
		all := bytes.Join(parts, nil)
		if err := json.Unmarshal(all, &read); err != nil {
			rt.Fatalf("%.200q: %v", all, err)
		}
		var sealed [][]byte
		for _, p := range parts {
			if len(p) == 0 || len(p) > partSize {
				rt.Errorf("a part has %d bytes", len(p))
			}
			sealed = append(sealed, []byte(seal(p)))
		}
		again, err := readIndex(sealed, hash)
		if err != nil {
			rt.Fatal(err)
		}
		whole, err := json.Marshal(again)
		if want, _ := json.Marshal(&read); err != nil || !bytes.Equal(whole, want) || len(read.Entries) != len(x.Entries) {
			rt.Errorf("read %.200q, want %.200q", whole, want)
		}
		if len(x.Entries) > 0 && !reflect.DeepEqual(read.Entries, x.Entries) {
			rt.Errorf("the entries are %.300v, want %.300v", read.Entries, x.Entries)
		}
	})
}
