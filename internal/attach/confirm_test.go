package attach_test

import (
	"context"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/attach"
)

// confirming is a registry of which something is held, or not.
type confirming struct {
	attach.Registries
	held bool
}

func (c confirming) Held(federation.ClusterID) bool     { return c.held }
func (c confirming) Confirm(federation.ClusterID) error { return nil }

// TestF47WhoAClusterWasIsForgottenWhatsoeverItsPhase: a rebuilt cluster does not accept the old
// credentials, so that it is STALE while its new kubeconfig is held. If the hub did not forget
// who the cluster was, it would hold the new one again after the confirmation.
func TestF47WhoAClusterWasIsForgottenWhatsoeverItsPhase(t *testing.T) {
	for _, phase := range []federation.Phase{federation.Held, federation.Stale, federation.Failed} {
		for _, held := range []bool{true, false} {
			snapshots := federation.NewAggregate(nil)
			snapshots.Open(federation.ShardKey{Cluster: "c1", Provider: federation.Operator}).Update(federation.Edit{
				Clusters: federation.Delta[federation.ClusterID,
					federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Kubernetes}}},
			})
			snapshots.Open(federation.ShardKey{
				Cluster:  "c1",
				Provider: federation.Kubernetes,
			}).Update(federation.Edit{Status: &federation.RegistryStatus{Phase: phase}})
			forgotten := false
			clusters := attach.New(attach.Options{
				Views: emptyView{&config.View{State: config.NewState(config.Options{})}}, Snapshots: snapshots,
				Registries: confirming{held: held}, Hub: "hub",
				Forget: func(context.Context, federation.ClusterID) error { forgotten = true; return nil },
			})
			if r, err := clusters.Confirm(t.Context(), "c1"); err != nil || len(r.Errors) > 0 {
				t.Fatal(r.Errors, err)
			}
			if forgotten != held {
				t.Errorf("of a cluster that is %s, held %t, it was forgotten who it was: %t", phase, held, forgotten)
			}
		}
	}
}
