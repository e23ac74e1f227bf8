package crd_test

import (
	"testing"

	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/crd"
)

// TestU23ClustersThatAreNotReadAreReported: where the config file excludes custom resources, MeshSettings that
// name clusters have a problem, and nobody waits for these clusters.
func TestU23ClustersThatAreNotReadAreReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *crd.Options) { o.Off = true })
	r.read(all("c1", "*"))
	recorder, _ := configtest.Listen(t, r.source)
	seen := recorder.Wait(t, "the problem", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Problems) == 1 })
	if !problem(seen, "SOURCE_OFF", "MeshSettings default", "remove spec.sources") {
		t.Errorf("the problems are %+v", seen.Problems)
	}
	r.read()
	recorder.Wait(t, "no problem", func(s configtest.Seen) bool { return len(s.Problems) == 0 })
}
