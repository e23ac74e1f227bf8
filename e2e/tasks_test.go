package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestTasks applies manifests to the effect of Istio's bookinfo, httpbin and
// helloworld tasks to a running hub and looks at what real Envoys then do.
func TestTasks(t *testing.T) {
	w := newTasks(t)
	t.Run("request routing", func(t *testing.T) { testRequestRouting(t, w) })
	t.Run("pod labels choose the subset", func(t *testing.T) { testPodLabels(t, w) })
	t.Run("traffic shifting", func(t *testing.T) { testTrafficShifting(t, w) })
	t.Run("fault injection", func(t *testing.T) { testFaults(t, w) })
	t.Run("request timeout", func(t *testing.T) { testTimeout(t, w) })
	t.Run("mirroring", func(t *testing.T) { testMirroring(t, w) })
	t.Run("circuit breaking", func(t *testing.T) { testCircuitBreaking(t, w) })
	t.Run("redirect, rewrite, headers, retries, CORS", func(t *testing.T) { testHTTPRoutes(t, w) })
	t.Run("egress", func(t *testing.T) { testEgress(t, w) })
	t.Run("TLS origination", func(t *testing.T) { testTLSOrigination(t, w) })
	t.Run("gateway", func(t *testing.T) { testGateway(t, w) })
	t.Run("gateway with TLS", func(t *testing.T) { testGatewayTLS(t, w) })
	t.Run("change under load", func(t *testing.T) { testChangeUnderLoad(t, w) })
	t.Run("dry run", func(t *testing.T) { testDryRun(t, w) })
	t.Run("rollback", func(t *testing.T) { testRollback(t, w) })
	t.Run("rejected by Envoy", func(t *testing.T) { testRejected(t, w) })
	t.Run("registered workload", func(t *testing.T) { testRegisteredWorkload(t, w) })
	t.Run("all versions without rules", func(t *testing.T) { testWithoutRules(t, w) })
}

func testRequestRouting(t *testing.T, w *tasks) {
	for _, version := range []string{"v1", "v2", "v3"} {
		w.task(t, "reviews-"+version)
		w.only(t, version)
	}
	w.task(t, "reviews-jason")
	w.only(t, "v2", "end-user", "jason")
	w.only(t, "v1")
	w.only(t, "v1", "end-user", "jasons")
	w.hub.supported(t, objectRef{Kind: "VirtualService", Name: "reviews"})
	w.hub.supported(t, objectRef{Kind: "DestinationRule", Name: "reviews"})
}

// testPodLabels gives a pod another version: the subsets follow at once.
func testPodLabels(t *testing.T, w *tasks) {
	w.task(t, "reviews-v3")
	w.c1.Apply(podOf("reviews-v2", "v3").Manifest())
	testbed.WaitFor(t, within, "answers of the pod and the machine", func() error {
		counts := w.versions(t, 10)
		if counts["reviews-v2"] == 0 || counts["reviews-v3"] == 0 || counts["reviews-v1"] > 0 {
			return fmt.Errorf("answers are %v", counts)
		}
		return nil
	})
	w.c1.Apply(podOf("reviews-v2", "v2").Manifest())
	testbed.WaitFor(t, within, "answers of the machine alone", func() error {
		if counts := w.versions(t, 10); counts["reviews-v3"] != 10 {
			return fmt.Errorf("answers are %v", counts)
		}
		return nil
	})
}

// testTrafficShifting wants shares within five standard deviations.
func testTrafficShifting(t *testing.T, w *tasks) {
	const n = 300
	w.task(t, "reviews-v1")
	w.only(t, "v1")
	for _, split := range []struct {
		task  string
		share float64 // of v3
	}{{"reviews-80-20", 0.2}, {"reviews-50-50", 0.5}} {
		w.task(t, split.task)
		testbed.WaitFor(t, within, "a first answer of v3", func() error {
			if name, err := w.reviews(); err != nil || name != "reviews-v3" {
				return fmt.Errorf("%s answers, %w", name, err)
			}
			return nil
		})
		counts := w.versions(t, n)
		off := 5 * math.Sqrt(n*split.share*(1-split.share))
		if got := float64(counts["reviews-v3"]); math.Abs(got-n*split.share) > off || counts["reviews-v1"]+counts["reviews-v3"] != n {
			t.Errorf("%s: of %d requests, answers are %v", split.task, n, counts)
		}
	}
}

func testFaults(t *testing.T, w *tasks) {
	w.task(t, "ratings-delay")
	timed := func(headers ...string) time.Duration {
		began := time.Now()
		if r := w.ratings(headers...); r.Err != nil || r.Status != http.StatusOK {
			t.Errorf("%v: status %d, %v", headers, r.Status, r.Err)
		}
		return time.Since(began)
	}
	testbed.WaitFor(t, within, "jason to wait", func() error {
		if took := timed("end-user", "jason"); took < 2*time.Second {
			return fmt.Errorf("jason waited %s", took)
		}
		return nil
	})
	testbed.WaitFor(t, within, "somebody else not to wait", func() error { // the machine may stop for a moment
		if took := timed(); took >= 2*time.Second {
			return fmt.Errorf("somebody else waited %s", took)
		}
		return nil
	})
	w.task(t, "ratings-abort")
	jason := func() testbed.Response { return w.ratings("end-user", "jason") }
	eventually(t, "500 for jason", jason, func(r testbed.Response) bool { return r.Status == http.StatusInternalServerError })
	if r := w.ratings(); r.Status != http.StatusOK {
		t.Errorf("somebody else gets %d, %v", r.Status, r.Err)
	}
}

func testTimeout(t *testing.T, w *tasks) {
	w.task(t, "reviews-timeout")
	w.only(t, "v2")
	// The caller waits for 10 s at most.
	if r := w.caller.Get(reviewsURL+"/reviews?delay=1m", "Host", "reviews:9080"); r.Status != http.StatusGatewayTimeout {
		t.Errorf("an answer after a minute, with a timeout of 0.5 s: status %d, %v", r.Status, r.Err)
	}
}

func testMirroring(t *testing.T, w *tasks) {
	w.task(t, "reviews-mirror")
	ask := func(path string) (string, error) { return w.answerer(reviewsURL+path, "Host", "reviews:9080") }
	mirrored := w.apps["reviews-v2"]
	testbed.WaitFor(t, within, "a first mirrored request", func() error {
		name, err := ask("/begin")
		if err != nil || name != "reviews-v1" || len(mirrored.requests("/begin")) == 0 {
			return fmt.Errorf("%s answers, %d are mirrored, %w", name, len(mirrored.requests("/begin")), err)
		}
		return nil
	})
	for range 20 {
		if name, err := ask("/mirrored"); err != nil || name != "reviews-v1" {
			t.Errorf("%s answers, %v", name, err)
		}
	}
	testbed.WaitFor(t, within, "20 mirrored requests", func() error {
		got := mirrored.requests("/mirrored")
		if len(got) != 20 || got[0].Host != "reviews:9080" { // as it was: R31
			return fmt.Errorf("there are %d: %+v", len(got), got)
		}
		return nil
	})
	if n := len(w.apps["reviews-v1"].requests("/mirrored")); n != 20 {
		t.Errorf("v1 was asked %d times for 20 requests", n)
	}
}

// testCircuitBreaking asks ten times at once a service that takes one connection
// and one waiting request.
func testCircuitBreaking(t *testing.T, w *tasks) {
	w.task(t, "httpbin-breaker")
	burst := func() (answered, overflown int) {
		results := make(chan testbed.Response)
		for range 10 {
			go func() { results <- w.httpbin("/slow?delay=700ms") }()
		}
		for range 10 {
			switch r := <-results; {
			case r.Status == http.StatusOK:
				answered++
			case r.Status == http.StatusServiceUnavailable && r.Header.Get("x-envoy-overloaded") == "true":
				overflown++
			default:
				t.Errorf("status %d, %v: %s", r.Status, r.Err, r.Body)
			}
		}
		return answered, overflown
	}
	testbed.WaitFor(t, within, "requests to be refused", func() error {
		if answered, overflown := burst(); answered == 0 || overflown == 0 {
			return fmt.Errorf("%d are answered, %d refused", answered, overflown)
		}
		return nil
	})
	if r := w.httpbin("/alone"); r.Status != http.StatusOK {
		t.Errorf("a single request gets %d, %v", r.Status, r.Err)
	}
}

func testWithoutRules(t *testing.T, w *tasks) {
	w.hub.change(t, "apply", map[string]any{
		"manifests": []string{"apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: plain, namespace: shop}\nspec: {host: plain.example.com}\n"},
		"set":       "task", "prune": true, "waitFor": untilAcked,
	}).complete(t)
	testbed.WaitFor(t, within, "answers of all versions", func() error {
		counts := w.versions(t, 30)
		if got := slices.Sorted(maps.Keys(counts)); !slices.Equal(got, []string{"reviews-v1", "reviews-v2", "reviews-v3"}) {
			return fmt.Errorf("answers are %v", counts)
		}
		return nil
	})
}
