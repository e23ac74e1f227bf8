package reconcile

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

// TestManyClustersSomeDead attaches 100 clusters, ten of which never answer: the 90
// are READY when the slowest of them was read, and the hub is ready when the ten had
// their time, all at once.
func TestManyClustersSomeDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := start(t, Start{})
		defer h.stop()
		const slowest = 3 * time.Second
		for i := range 100 {
			h.post(func(in *Inputs) {
				id := fmt.Sprintf("c%02d", i)
				in.Objects[federation.ClusterID(id)] = claimOf(id, "1", func(ctx context.Context, to registries.Sink) error {
					if i%10 != 0 {
						<-time.NewTimer(slowest * time.Duration(i) / 100).C
						to.Update(registrytest.Full(byte(i), 2))
					}
					<-ctx.Done()
					return nil
				})
				in.ObjectsLooked = true
			})
		}
		synctest.Wait()
		if took := time.Since(began); took != 0 || len(h.Reconciler.Latest().Clusters) != 100 {
			t.Errorf("after %v %d clusters are attached", took, len(h.Reconciler.Latest().Clusters))
		}
		<-time.NewTimer(slowest).C
		synctest.Wait()
		ready := 0
		for c := range h.Aggregate.Latest().Clusters() {
			if c.Status.Phase == federation.Ready {
				ready++
			}
		}
		if ready != 90 {
			t.Errorf("%d clusters are READY after %v", ready, slowest)
		}
		<-h.supervisor.Ready()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the start took %v, want the time of one cluster that does not answer", took)
		}
	})
}
