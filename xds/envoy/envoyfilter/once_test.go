package envoyfilter

import (
	"runtime"
	"sync"
	"testing"
	"weak"

	"google.golang.org/protobuf/proto"
)

const manyClusters = `
- applyTo: CLUSTER
  patch: {operation: MERGE, value: {alt_stat_name: shared, typed_extension_protocol_options: {
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {max_concurrent_streams: 7}}}}}}
- applyTo: HTTP_FILTER
  patch: {operation: INSERT_FIRST, value: {name: 7}}
`

// TestPatchesAreReadOnce: what many resources have of a patch was read once, is the same for all
// of them, and is not changed by any.
func TestPatchesAreReadOnce(t *testing.T) {
	patches := patchesIn(t, manyClusters)
	first, err := read(patches[0])
	if err != nil {
		t.Fatal(err)
	}
	before := proto.Clone(first.value)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if now, _ := Patched(webCluster(), patches); now.(interface{ GetAltStatName() string }).GetAltStatName() != "shared" {
				t.Errorf("a cluster became %v", now)
			}
		})
	}
	all.Wait()
	again, err := read(patches[0])
	if err != nil || again.value != first.value || !proto.Equal(again.value, before) {
		t.Errorf("read again, the value is %v (%v), want the very %v", again.value, err, before)
	}
	for range 2 {
		if _, err := read(patches[1]); err == nil {
			t.Error("a name that is a number was read")
		}
	}
}

// TestValuesGoWithTheirPatches: nothing is kept of a patch that nobody has any more.
func TestValuesGoWithTheirPatches(t *testing.T) {
	for _, at := range readAndDrop(t) {
		for is := true; is; _, is = valuesRead.Load(at) {
			runtime.GC()
			runtime.Gosched()
		}
	}
}

func readAndDrop(t *testing.T) (read []weak.Pointer[configPatch]) {
	for _, p := range patchesIn(t, manyClusters) {
		_, _ = valueOf(p.Spec)
		at := weak.Make(p.Spec)
		if _, is := valuesRead.Load(at); !is {
			t.Fatal("what was read of a patch is not kept")
		}
		read = append(read, at)
	}
	return read
}

func BenchmarkPatched(b *testing.B) {
	patches := patchesIn(b, manyClusters)
	c := webCluster()
	b.ReportAllocs()
	for b.Loop() {
		Patched(c, patches)
	}
}
