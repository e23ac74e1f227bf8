package xds

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// A proxy on an open stream is updated when its own namespace takes a hostname over,
// and when it gives it back.
func TestR22AnOpenStreamFollowsTheOwner(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		other := federation.ServiceKey{Hostname: key("web").Hostname, Namespace: "other"}
		h := newHub(t)
		h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{other: httpShard(1)}})
		c := h.client(xdstest.Options{Delta: delta})
		c.get(xdstest.Request{Type: xdstest.CDS})
		theirs := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web")}}).Resources[cluster("web")]
		own := httpShard(2)
		own.ExportTo = []string{"."}
		h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("web"): own}})
		if got := c.accept(xdstest.EDS).Resources[cluster("web")]; proto.Equal(got, theirs) {
			t.Error("the endpoints are those of the other namespace still")
		}
		h.set(serviceDelta{Gone: []federation.ServiceKey{key("web")}})
		if got := c.accept(xdstest.EDS).Resources[cluster("web")]; !proto.Equal(got, theirs) {
			t.Error("the endpoints are not those of the other namespace again")
		}
	})
}
