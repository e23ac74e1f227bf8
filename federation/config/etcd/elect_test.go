package etcd_test

import (
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"isthmus.dev/isthmus/federation/config/etcd"
)

// TestF01AStoreOpensWithALongLog: the first election waits until Raft knows that etcd
// has applied the log. If it does not, one start in some dozens ends with a sound store
// called damaged.
func TestF01AStoreOpensWithALongLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	s := open(t, dir)
	var writers sync.WaitGroup
	for w := range 50 {
		writers.Go(func() {
			for i := range 60 {
				if _, err := s.Client().Put(t.Context(), "/x/"+strconv.Itoa(w), strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range max(*crashes, 10) {
		s, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir})
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
