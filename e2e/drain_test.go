package e2e

import "testing"

const drainC2 = `apiVersion: isthmus.dev/v1
kind: Drain
metadata: {name: c2}
spec: {cluster: c2}
`

// TestN08DrainMovesRequests: requests move away from a drained cluster and back, and none fails.
func TestN08DrainMovesRequests(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.awaitEndpoints(patience, "c1", "c2", "dc1")
	caller := w.startClient("drain", "10.77.0.14", "DELTA_GRPC")
	caller.awaitAnswerers(t, patience, "c1", "c2", "dc1")
	requests := startLoad(t, []*client{caller})
	w.hub.change(t, "apply", map[string]any{"manifests": []string{drainC2}})
	caller.awaitAnswerers(t, patience, "c1", "dc1")
	w.hub.change(t, "delete", map[string]any{"objects": []map[string]any{{"group": "isthmus.dev", "kind": "Drain", "name": "c2"}}})
	caller.awaitAnswerers(t, patience, "c1", "c2", "dc1")
	requests.finish(t)
	t.Run("G141 hosts that both clusters have", func(t *testing.T) { testContests(t, w) })
}
