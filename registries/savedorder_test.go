package registries

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestR60RecordsAreWrittenInOrder: out of order, the first write of 50,000 workloads moved each of them thousands of times, which took
// 6 s of processor time.
func TestR60RecordsAreWrittenInOrder(t *testing.T) {
	c := savedChange{whole: true, header: savedHeader{Cluster: "c1", Provider: federation.Mock}}
	for i := range 100 {
		bucket := []string{workloadBucket, serviceBucket}[i%2]
		c.records = append(c.records, savedRecord{bucket: bucket, key: fmt.Appendf(nil, "%03d", i*37%100), value: []byte("{}")})
	}
	if err := createSaved(filepath.Join(t.TempDir(), "c1.Mock.db"), c); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(c.records, func(a, b savedRecord) int {
		return strings.Compare(a.bucket+string(a.key), b.bucket+string(b.key))
	}) {
		t.Error("the records are not in the order of their keys")
	}
}
