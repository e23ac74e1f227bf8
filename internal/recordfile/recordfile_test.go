package recordfile_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/internal/recordfile"
)

// TestR60RecordsAreWrittenInOrder: out of order, the first write of 50,000 workloads moved each of them thousands of times, which took
// 6 s of processor time.
func TestR60RecordsAreWrittenInOrder(t *testing.T) {
	f := recordfile.File{
		Path: filepath.Join(t.TempDir(), "c1.db"), Header: "header", Buckets: []string{"one", "two"},
		Format: 1, Title: "a test",
	}
	var records []recordfile.Record
	for i := range 100 {
		records = append(records, recordfile.Record{Bucket: f.Buckets[i%2], Key: fmt.Appendf(nil, "%03d", i*37%100), Value: []byte("{}")})
	}
	if err := f.Create(&struct{ recordfile.Stamp }{}, records); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(records, func(a, b recordfile.Record) int {
		return strings.Compare(a.Bucket+string(a.Key), b.Bucket+string(b.Key))
	}) {
		t.Error("the records are not in the order of their keys")
	}
}
