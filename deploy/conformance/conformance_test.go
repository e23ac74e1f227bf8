package conformance

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	clientset "k8s.io/client-go/kubernetes"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

var (
	everything = flag.Bool("everything", false, "run every case that can run here, not only a choice")
	only       = flag.String("only", "", "run the cases of these names alone, separated by commas")
	untried    = flag.Bool("untried", false, "run the cases that can run here and are not chosen")
)

// TestG24Conformance runs cases of the conformance suite as they are.
func TestG24Conformance(t *testing.T) {
	r := newRig(t)
	stop := r.control(t)
	defer stop()
	s := r.suite(t)
	s.Setup(t, tests.ConformanceTests)
	t.Run("case", func(t *testing.T) { // ends with the cases that are parallel
		if err := s.Run(t, chosen()); err != nil {
			t.Fatal(err)
		}
	})
}

// chosen are the cases that run.
func chosen() []suite.ConformanceTest {
	return slices.DeleteFunc(slices.Clone(tests.ConformanceTests), func(c suite.ConformanceTest) bool {
		if *only != "" {
			return !slices.Contains(strings.Split(*only, ","), c.ShortName)
		}
		is := slices.Contains(choice, c.ShortName)
		return reasonNotToRun(c.ShortName) != "" || *untried && is || !*everything && !*untried && !is
	})
}

func (r *rig) suite(t *testing.T) *suite.ConformanceTestSuite {
	t.Helper()
	set, err := clientset.NewForConfig(r.access)
	if err != nil {
		t.Fatal(err)
	}
	limits := config.DefaultTimeoutConfig()
	limits.TestIsolation = 0
	s, err := suite.NewConformanceTestSuite(suite.ConformanceOptions{
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: class, CleanupTestResources: true, EnableAllSupportedFeatures: true, AllowCRDsMismatch: true, TimeoutConfig: limits,
		},
		Client: r.client, Clientset: set, RestConfig: r.access, ManifestFS: []fs.FS{&conformance.Manifests},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// control does the work of the controllers of a cluster until it is stopped.
func (r *rig) control(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	proxies := &gateways{rig: r, running: map[string]string{}, exposed: map[string]bool{}}
	node := startKubelet(r)
	parts := []interface{ sync(context.Context) error }{
		&pods{rig: r, kubelet: node, running: map[string]pod{}, written: map[string]bool{}}, proxies, node,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, part := range parts {
				if err := part.sync(ctx); err != nil && !errors.Is(err, context.Canceled) {
					t.Logf("controller: %v", err)
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}
