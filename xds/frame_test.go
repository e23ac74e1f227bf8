package xds

import (
	"fmt"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/xds/envoy"
)

// What is put together by hand is what the generated types would have written.
func TestPropertyFramesAreDiscoveryResponses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &response{kind: envoy.ClusterType, version: rapid.String().Draw(t, "version"), nonce: rapid.String().Draw(t, "nonce")}
		sotw := &discoveryv3.DiscoveryResponse{VersionInfo: r.version, Nonce: r.nonce, TypeUrl: string(r.kind)}
		delta := &discoveryv3.DeltaDiscoveryResponse{SystemVersionInfo: r.version, Nonce: r.nonce, TypeUrl: string(r.kind)}
		for i := range rapid.IntRange(0, 5).Draw(t, "resources") {
			name := fmt.Sprintf("c%d%s", i, rapid.StringN(0, 300, -1).Draw(t, "name"))
			m := &clusterv3.Cluster{Name: name}
			res, err := newResource(r.kind, name, m)
			if err != nil {
				t.Fatal(err)
			}
			packed, _ := anypb.New(m)
			r.resources = append(r.resources, res)
			sotw.Resources = append(sotw.Resources, packed)
			delta.Resources = append(delta.Resources, &discoveryv3.Resource{Name: name, Version: res.version, Resource: packed})
		}
		var gotSotW discoveryv3.DiscoveryResponse
		decode(t, r, &gotSotW)
		if !proto.Equal(&gotSotW, sotw) {
			t.Fatalf("SotW: got %v, want %v", &gotSotW, sotw)
		}
		r.delta, r.removed = true, rapid.SliceOf(rapid.String()).Draw(t, "removed")
		delta.RemovedResources = r.removed
		var gotDelta discoveryv3.DeltaDiscoveryResponse
		decode(t, r, &gotDelta)
		if !proto.Equal(&gotDelta, delta) {
			t.Fatalf("delta: got %v, want %v", &gotDelta, delta)
		}
	})
}

func decode(t *rapid.T, r *response, into proto.Message) {
	data, err := codec{}.Marshal(r.frame())
	if err != nil {
		t.Fatal(err)
	}
	if err := (codec{}).Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func TestCodecIsProtoForEverythingElse(t *testing.T) {
	m := &discoveryv3.DiscoveryRequest{TypeUrl: "t", ResourceNames: []string{"a"}}
	data, err := codec{}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got discoveryv3.DiscoveryRequest
	if err := (codec{}).Unmarshal(data, &got); err != nil || !proto.Equal(&got, m) {
		t.Errorf("got %v, %v", &got, err)
	}
	if _, err := (codec{}).Marshal("text"); err == nil {
		t.Error("a string was taken for a message")
	}
	if err := (codec{}).Unmarshal(data, new(int)); err == nil {
		t.Error("a number was taken for a message")
	}
}
