package xds

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// registerWeb has the registry say of the workload of node web-1 whether it takes
// mutual TLS.
func (r *real) registerWeb(tlsMode string) {
	e := federation.Edit{}
	e.Workloads.Set = map[federation.WorkloadKey]*federation.Workload{{Namespace: "shop", Name: "web-1"}: {
		Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.9")}, TLSMode: tlsMode,
	}}
	r.writer.Update(e)
}

func (r *real) connected(want int) func() error {
	return func() error {
		if n := r.fleet.Latest().Count(); n != want {
			return fmt.Errorf("%d proxies are connected, want %d", n, want)
		}
		return nil
	}
}

// A proxy without an identity is never ready beside a workload that callers speak
// mutual TLS with: every call would fail. It gets the reason, and is served once both agree.
func TestR34AnEnvoyWithoutIdentityIsRefusedWhereCallersSpeakMutualTLS(t *testing.T) {
	dir, err := os.MkdirTemp("", "plain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	a := federation.NewAggregate(nil)
	said := &testbed.LogText{}
	r := &real{t: t, writer: a.Open(source1), fleet: fleet.New(), socket: filepath.Join(dir, "hub")}
	r.set(service("web", 1))
	r.registerWeb(federation.MutualTLS)
	r.server = New(Options{Snapshots: a, Fleet: r.fleet, Metrics: r, Logger: slog.New(slog.NewTextHandler(said, nil)), timing: &patient})
	r.serve()
	t.Cleanup(func() { r.stop() })
	config := strings.NewReplacer("NODE", node("web-1").Id, "API", "DELTA_GRPC", "SOCKET", r.socket).Replace(bootstrap)
	r.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "plain", Config: []byte(config), Namespace: testbed.NewNamespace(t, "plain")})
	r.await("the refusal", func() error {
		if r.first(Denied, "") < 0 {
			return errors.New("no stream was refused")
		}
		if text := said.String(); !strings.Contains(text, "shop/web-1") || !strings.Contains(text, "IDENTITY_SOURCE") {
			return fmt.Errorf("the log does not say what to do: %s", text)
		}
		return nil
	})
	if at := r.first(Sent, envoy.ListenerType); at >= 0 {
		t.Error("it was sent listeners that take plain text")
	}
	if _, err := r.envoy.Admin("/ready"); err == nil {
		t.Error("it is ready")
	}
	r.registerWeb("disabled")
	r.envoy.WaitReady(3 * patience)
	r.await("everything to be accepted", r.inSync)
	r.forget()
	r.registerWeb(federation.MutualTLS)
	r.await("the stream to end", r.connected(0))
}

// With an identity the same workload is served.
func TestR34AnEnvoyWithIdentityIsServedWhereCallersSpeakMutualTLS(t *testing.T) {
	r := newMeshProxy(t, "DELTA_GRPC")
	r.registerWeb(federation.MutualTLS)
	r.set(service("more", 1))
	r.await("the clusters", r.hasClusters(cluster("named"), cluster("web"), cluster("more")))
	r.await("everything to be accepted", r.inSync)
	r.await("the stream to go on", r.connected(1))
}
