package testbed

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// Definitions are the CustomResourceDefinitions of a packed file, as JSON: those of the names,
// or all where none is named.
func Definitions(t testing.TB, packed string, names ...string) []string {
	t.Helper()
	file, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&list); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, text := range list {
		var named struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(text, &named); err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 || slices.Contains(names, named.Metadata.Name) {
			found = append(found, string(text))
		}
	}
	return found
}
