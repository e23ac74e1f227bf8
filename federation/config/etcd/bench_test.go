package etcd_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// manifests are objects of about 1 KiB each.
func manifests(n int) []*config.Object {
	objects := make([]*config.Object, n)
	for i := range objects {
		objects[i] = configtest.Object(fmt.Sprintf("o-%05d", i), strings.Repeat(fmt.Sprint(i%10), 900))
	}
	return objects
}

// BenchmarkApplyTenThousand compares a commit of 10,000 objects with one put for
// each, one after the other, of the same bytes and to the same disk. Goal: at
// most 1.5 times as long.
func BenchmarkApplyTenThousand(b *testing.B) {
	objects := manifests(10_000)
	s, err := etcd.Open(b.Context(), etcd.Options{DataDir: filepath.Join(b.TempDir(), "etcd")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := s.Config(etcd.ConfigOptions{})
	var commits, puts time.Duration
	base := int64(0)
	for b.Loop() {
		began := time.Now()
		for _, o := range objects {
			if _, err := s.Client().Put(b.Context(), "/bench/"+o.Key.Name, string(o.Manifest)); err != nil {
				b.Fatal(err)
			}
		}
		puts += time.Since(began)
		began = time.Now()
		for _, o := range objects {
			o.Manifest = []byte(strings.Replace(string(o.Manifest), `"value":"`, `"value":"`+fmt.Sprint(base%10), 1))
		}
		base, err = c.Commit(b.Context(), configtest.Set(base, objects...))
		if err != nil {
			b.Fatal(err)
		}
		commits += time.Since(began)
	}
	b.ReportMetric(float64(commits)/float64(puts), "commit/puts")
	b.ReportMetric(commits.Seconds()/float64(b.N), "s/commit")
	b.ReportMetric(puts.Seconds()/float64(b.N), "s/puts")
}

// TestBE7 loads many objects and a large one.
func TestBE7LargeStoreIsLoadedInBoundedTimeAndMemory(t *testing.T) {
	s := opened(t, etcd.Options{})
	objects := append(manifests(20_000), configtest.Object("large", strings.Repeat("x", 1<<20-1000)))
	bytes := 0
	for _, o := range objects {
		bytes += len(o.Manifest)
	}
	revision := configtest.Must(t, s.Config(etcd.ConfigOptions{Patience: configtest.Patience}), configtest.Set(0, objects...))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	runtime.KeepAlive(objects)
	clock, began := testbed.StartClock(t), time.Now()
	c := s.Config(etcd.ConfigOptions{})
	recorder, _ := configtest.Listen(t, c)
	seen := recorder.WaitRevision(t, revision)
	took := clock.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := float64(after.HeapAlloc) - float64(before.HeapAlloc)
	t.Logf("%d objects of %d bytes loaded in %v; %.1f times their bytes are held", len(seen.Objects), bytes, took, held/float64(bytes))
	if len(seen.Objects) != 20_001 {
		t.Errorf("%d objects", len(seen.Objects))
	}
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if held > 4*float64(bytes) {
		t.Errorf("it holds %.0f bytes", held)
	}
}
