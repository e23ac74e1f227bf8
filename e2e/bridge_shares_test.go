package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
	"isthmus.dev/isthmus/deploy/testbed"
)

// testShares: wherever a pod runs, it gets its share of the requests, however many
// gateways are before it.
func testShares(t *testing.T, w *bridge.Topology) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for round := range *bridgeRounds {
		shape := map[string]bridge.Shape{}
		for _, s := range w.Sites {
			shape[s.Cluster] = bridge.Shape{Pods: 1 + random.IntN(len(s.Workload.Addresses)), Gateways: 1 + random.IntN(len(s.Gateways))}
			s.Scale(shape[s.Cluster].Pods)
			w.Open(t, s, shape[s.Cluster].Gateways)
		}
		from := w.Sites[random.IntN(len(w.Sites))]
		t.Logf("round %d, from %s, pods and gateways %v", round, from.Cluster, shape)
		lookAtShares(t, shape, func() map[string]int { return askUndisturbed(t, w, from, shape) })
	}
	for _, s := range w.Sites {
		s.Scale(len(s.Workload.Addresses))
		w.Open(t, s, len(s.Gateways))
	}
	awaitShape(t, w, map[string]bridge.Shape{"c1": {Pods: 4, Gateways: 2}, "c2": {Pods: 5, Gateways: 3}, "dc1": {Pods: 4, Gateways: 1}})
}

// askUndisturbed counts which pods answer while the caller has the endpoints of the
// shape. Where the machine stalls, the hub takes a gateway for dead until its next answer:
// the requests are then repeated.
func askUndisturbed(t *testing.T, w *bridge.Topology, from *bridge.Site, shape map[string]bridge.Shape) map[string]int {
	t.Helper()
	const tries = 5
	for range tries {
		awaitShape(t, w, shape)
		before := from.Caller.Updates(bridge.Host)
		if before == 0 {
			t.Fatal("Envoy does not count updates of the endpoints")
		}
		counts := askMany(t, from, *bridgeRequests)
		wrong, updates := shaped(w, shape), from.Caller.Updates(bridge.Host)-before
		if wrong == nil && updates == 0 {
			return counts
		}
		t.Logf("the endpoints of %s changed %d times during its requests: %v", from.Cluster, updates, wrong)
	}
	t.Fatalf("the endpoints of %s changed during each of %d rounds of requests", from.Cluster, tries)
	return nil
}

// awaitShape waits until the endpoints are those of the shape.
func awaitShape(t *testing.T, w *bridge.Topology, shape map[string]bridge.Shape) {
	t.Helper()
	testbed.WaitFor(t, patience, fmt.Sprint("endpoints and weights of ", shape), func() error { return shaped(w, shape) })
}

// shaped is an error unless every sidecar weighs what there is, and every gateway has
// the pods that are behind it.
func shaped(w *bridge.Topology, shape map[string]bridge.Shape) error {
	var wrong []error
	for _, from := range w.Sites {
		found, err := from.Caller.Endpoints(bridge.Host)
		if err != nil {
			return err
		}
		wrong = append(wrong, weighed(w, from, shape, found))
		for _, g := range from.Gateways {
			behind, err := g.Behind(bridge.Host)
			if err == nil && len(behind) != shape[from.Cluster].Pods {
				err = fmt.Errorf("behind the gateway %s are %v", g.Outside, behind)
			}
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

// weighed is an error unless the gateways of each site weigh as its pods do.
func weighed(w *bridge.Topology, from *bridge.Site, shape map[string]bridge.Shape, found map[string]int) error {
	pod, pods := found[from.Workload.Addresses[0]+":8080"], 0
	for _, to := range w.Sites {
		if to == from {
			continue
		}
		weight, gateways := 0, 0
		for _, g := range to.Gateways {
			if found[g.Entry()] > 0 {
				weight, gateways = weight+found[g.Entry()], gateways+1
			}
		}
		if want := shape[to.Cluster]; weight != want.Pods*pod || gateways != want.Gateways {
			return fmt.Errorf("%s sees %d gateways of %s with %d; a pod has %d: %v", from.Cluster, gateways, to.Cluster, weight, pod, found)
		}
		pods += gateways
	}
	if own := len(found) - pods; own != shape[from.Cluster].Pods {
		return fmt.Errorf("%s sees %d pods of its own: %v", from.Cluster, own, found)
	}
	return nil
}

// askMany sends the requests, some at a time, and counts which pods answer.
func askMany(t *testing.T, from *bridge.Site, n int) map[string]int {
	t.Helper()
	const atOnce = 6
	counts, failures := map[string]int{}, []error(nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range atOnce {
		all.Go(func() {
			for range (n + i) / atOnce {
				answer, err := from.Ask(bridge.Host, "/")
				mu.Lock()
				counts[answer.Cluster+"/"+answer.Pod]++
				if err != nil {
					failures = append(failures, err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(failures) > 0 {
		t.Fatalf("%d of %d requests failed: %v", len(failures), n, failures[0])
	}
	return counts
}

// lookAtShares wants one of three looks to find equal shares. Chance alone makes one look in
// some hundred fail, and three in a row never; shares that are wrong are wrong in each.
func lookAtShares(t *testing.T, shape map[string]bridge.Shape, look func() map[string]int) {
	t.Helper()
	var wrong []error
	for range 3 {
		said, err := shares(shape, look())
		t.Log(said)
		if err == nil {
			return
		}
		wrong = append(wrong, err)
	}
	t.Errorf("in each of three looks: %v", errors.Join(wrong...))
}

// shares is an error unless the counts are what equal shares of all pods bring
// about: each within 2 percentage points, or what chance explains where the requests
// are few, and all together by a chi-square test that errs once in a thousand.
func shares(shape map[string]bridge.Shape, counts map[string]int) (said string, wrong error) {
	var all []error
	pods, n := 0, 0
	squares, worst := 0.0, 0.0
	for _, s := range shape {
		pods += s.Pods
	}
	for _, count := range counts {
		n += count
	}
	p := 1 / float64(pods)
	bound := max(0.02, 3.29*math.Sqrt(p*(1-p)/float64(n)))
	var line []string
	for _, cluster := range slices.Sorted(maps.Keys(shape)) {
		for i := range shape[cluster].Pods {
			name := fmt.Sprintf("%s/web-%d", cluster, i)
			off := math.Abs(float64(counts[name])/float64(n) - p)
			worst = max(worst, off)
			if off > bound {
				all = append(all, fmt.Errorf("%s answered %d of %d, more than %.2f%% off its share", name, counts[name], n, 100*bound))
			}
			squares += math.Pow(float64(counts[name])-p*float64(n), 2) / (p * float64(n))
			line = append(line, fmt.Sprintf("%s %d", name, counts[name]))
			delete(counts, name)
		}
	}
	if len(counts) > 0 {
		all = append(all, fmt.Errorf("others answered: %v", counts))
	}
	limit := chiSquareLimit(pods - 1)
	if squares > limit {
		all = append(all, fmt.Errorf("chi-square is %.2f, more than %.2f", squares, limit))
	}
	said = fmt.Sprintf("%d requests, each of %d pods within %.2f points of %.2f%%, chi-square %.2f of at most %.2f: %s",
		n, pods, 100*worst, 100*p, squares, limit, strings.Join(line, ", "))
	return said, errors.Join(all...)
}

// chiSquareLimit is what a sum of squares with so many degrees of freedom exceeds
// once in a thousand, by the approximation of Wilson and Hilferty.
func chiSquareLimit(freedom int) float64 {
	if freedom < 1 {
		return 0
	}
	d := 2 / (9 * float64(freedom))
	return float64(freedom) * math.Pow(1-d+3.0902*math.Sqrt(d), 3)
}

func TestChiSquareLimit(t *testing.T) {
	for freedom, want := range map[int]float64{2: 13.82, 5: 20.52, 9: 27.88, 12: 32.91} {
		if got := chiSquareLimit(freedom); math.Abs(got-want) > 0.03*want {
			t.Errorf("%d degrees of freedom: %.2f, the tables have %.2f", freedom, got, want)
		}
	}
}
