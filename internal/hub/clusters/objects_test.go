package clusters

import (
	"fmt"
	"log/slog"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/registries/provider"
)

// TestR06ClusterObjectsSetLimits as the file does: what one does not set, all clusters
// have. Other limits are another registry.
func TestR06ClusterObjectsSetLimits(t *testing.T) {
	object := func(objects int) kinds.Cluster {
		c, err := kinds.OfObject(&config.Object{
			Key:      federation.ObjectKey{Name: "a"},
			Manifest: fmt.Appendf(nil, `{"spec": {"provider": "Mock", "limits": {"objects": %d, "bytes": "64Mi"}}}`, objects),
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, with := object(9), maker{Hub: kinds.Hub{Host: provider.Host{
		Limits: federation.Limits{Objects: 7, Pages: 5},
		Logger: slog.New(slog.DiscardHandler),
	}}}
	if got, want := c.LimitsOr(with.Limits), (federation.Limits{Objects: 9, Pages: 5, Bytes: 64 << 20}); got != want {
		t.Errorf("it has %+v, want %+v", got, want)
	}
	o := objectClusters{maker: with}
	k, err := with.Of(c.Provider)
	if err != nil {
		t.Fatal(err)
	}
	before, err := o.sealed(k, c, "")
	if err != nil {
		t.Fatal(err)
	}
	if after, err := o.sealed(k, object(10), ""); err != nil || after.Fingerprint == before.Fingerprint {
		t.Errorf("with other limits it is the same registry, %v", err)
	}
}
