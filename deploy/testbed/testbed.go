// Package testbed starts and stops the real neighbours of the hub for tests:
// etcd, kube-apiserver, Consul and Envoy, networks of namespaces that cannot
// reach each other, echo servers and a TCP proxy that misbehaves on demand.
//
// Everything that a function starts ends with the test that started it, also
// after a panic. When the test fails, the logs are kept and the test log says
// where. The package is for Linux and imports the standard library only.
package testbed

import (
	"context"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// Programs holds the paths of the real programs.
type Programs struct {
	Etcd, KubeAPIServer, Consul, Envoy string
}

// Tools returns the installed programs and ends the test if one is missing.
func Tools(t testing.TB) Programs {
	t.Helper()
	return Programs{
		Etcd:          locate(t, toolset.Etcd),
		KubeAPIServer: locate(t, toolset.KubeAPIServer),
		Consul:        locate(t, toolset.Consul),
		Envoy:         locate(t, toolset.Envoy),
	}
}

// Needs skips a test that needs something real, such as a program, when tests run
// with -short, as make test-unit runs them.
func Needs(t testing.TB, what string) {
	t.Helper()
	if testing.Testing() && testing.Short() {
		t.Skipf("it needs %s", what)
	}
}

func locate(t testing.TB, name string) string {
	t.Helper()
	Needs(t, name)
	path, installed, err := toolset.Locate(name)
	if err != nil {
		t.Fatalf("locating %s: %v", name, err)
	}
	if !installed {
		t.Fatalf("locating %s: it is not installed at %s; run make tools", name, path)
	}
	return path
}

// WaitFor calls check every 20 ms until it returns nil. It ends the test with
// the last error of check when that takes longer than limit.
func WaitFor(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := poll(ctx, nil, check); err != nil {
		t.Fatalf("waiting %s for %s: %v", limit, what, err)
	}
}

// Within wants one of three tries, each of which says how long it took, to keep what
// is promised. Stops of the machine do not count.
func Within(t testing.TB, promised time.Duration, try func() time.Duration) {
	t.Helper()
	clock := StartClock(t)
	once := func() time.Duration {
		began := time.Now()
		took := try()
		return took - clock.stopped(began, time.Now())
	}
	quickest := once()
	for n := 1; n < 3 && quickest > promised; n++ {
		quickest = min(quickest, once())
	}
	if quickest > promised {
		t.Errorf("it took %s, promised are %s", quickest, promised)
	}
}

// poll returns nil once check does, else its last error when ctx or stop ends.
func poll(ctx context.Context, stop <-chan struct{}, check func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-stop:
			return err
		case <-tick.C:
		}
	}
}
