package etcd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// FuzzRecord reads arbitrary bytes as every type of value (B-E1).
func FuzzRecord(f *testing.F) {
	d := &draft{index: index{indexHead: indexHead{Revision: 1, Note: config.Note{Author: "ann"}}}}
	manifest := []byte(`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"}}`)
	d.add(entry{Key: federation.ObjectKey{Kind: "A", Name: "n"}, Action: config.Created}, manifest)
	data, _, err := d.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(seal(data...)), 0, len(manifest))
	f.Add([]byte(seal(bytes.Join(d.parts[0].manifests, nil))), 0, len(manifest))
	f.Add([]byte(""), 1, 2)
	f.Add([]byte("isthmus/0002 "), -1, 1<<40)
	f.Add([]byte(seal([]byte(strings.Repeat("[", 10_000)))), 1<<62, 1<<62)
	f.Fuzz(func(t *testing.T, value []byte, offset, length int) {
		inside, err := payload(value)
		if err == nil && seal(inside) != string(value) {
			t.Errorf("%q is read and written as another value", value)
		}
		for _, into := range []any{&head{}, &logEntry{}, &checkpoint{}, &txRoot{}, &leasedValue{}} {
			if err := unseal(value, into); err == nil {
				if _, err := json.Marshal(into); err != nil {
					t.Error(err)
				}
			}
		}
		if x, err := readIndex([][]byte{value}, digest(inside)); err == nil && x == nil {
			t.Error("no index and no error")
		}
		e := entry{Key: federation.ObjectKey{Kind: "A", Name: "n"}, Offset: offset, Length: length, Digest: digest(manifest)}
		data, err := values(value)
		if err != nil {
			return
		}
		if o, err := e.object(data); err == nil && !bytes.Equal(o.Manifest, manifest) {
			t.Errorf("a value of another digest is read as %q", o.Manifest)
		}
	})
}

// FuzzKey reads arbitrary keys (B-E2).
func FuzzKey(f *testing.F) {
	for _, key := range []string{
		headKey, logKey(7), checkpointKey(0), onceKey("x"), rootKey("A7"), partKey(valueFolder("A7"), 3), partKey(indexFolder("A7"), 0),
		leasedKey(federation.ObjectKey{Group: "a.b", Kind: "C", Name: "d/e"}), leasedRoot + "//", configRoot + "log/\x00", txPrefix + "../root",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if k, err := readLeasedKey(key); err == nil && leasedKey(k) != key {
			t.Errorf("%q is read as %v and written as %q", key, k, leasedKey(k))
		}
		if n, err := numbered(key, logPrefix); err == nil && logKey(n) != key {
			t.Errorf("%q is read as %d", key, n)
		}
		if id, err := transaction(key); err == nil && !strings.HasPrefix(key, txFolder(id)) {
			t.Errorf("%q is read as of %q", key, id)
		}
		if known(key) && (!strings.HasPrefix(key, configRoot) || strings.ContainsAny(key, "\x00 ")) {
			t.Errorf("%q is taken for one of ours", key)
		}
	})
}

// FuzzPages reads arbitrary bytes as a file of bbolt's (F22).
func FuzzPages(f *testing.F) {
	f.Add([]byte("no database"))
	f.Add(make([]byte, 8192))
	f.Fuzz(func(_ *testing.T, file []byte) { _ = checkPages(bytes.NewReader(file)) })
}
