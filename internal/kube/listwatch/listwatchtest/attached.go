package listwatchtest

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// Attached is a cluster that a hub would attach by a kubeconfig.
type Attached struct {
	*listwatch.Cluster
	client *kube.Client
}

// Attach reaches the cluster of the kubeconfig, custom resources included.
func Attach(t testing.TB, kubeconfig []byte, probe time.Duration) Attached {
	t.Helper()
	credentials, err := kube.Parse(kubeconfig, kube.ParseOptions{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.Connect(credentials, kube.ConnectOptions{Allow: func(netip.AddrPort) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	custom, err := client.Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	cluster := listwatch.NewCluster(client, listwatch.ClusterOptions{Probe: probe, Logger: slog.New(slog.DiscardHandler), Dynamic: custom})
	return Attached{cluster, client}
}

// Report has the registry show the state and the identity of the cluster until ctx ends.
func (a Attached) Report(ctx context.Context, registry *federation.Writer) {
	a.Run(ctx, func(uid string, trouble error) {
		status := federation.RegistryStatus{Phase: federation.Ready}
		if trouble != nil {
			status = federation.RegistryStatus{Phase: federation.Stale, Message: trouble.Error()}
		}
		edit := federation.Edit{Status: &status}
		if uid != "" {
			edit.Identity = &federation.ClusterIdentity{UID: uid}
		}
		registry.Update(edit)
	})
}

// Close ends connections that are not used.
func (a Attached) Close() { a.client.Close() }

// Connected is a cluster that is reached as the config says, custom resources included. It is
// probed until the test ends, and was probed once.
func Connected(t testing.TB, config *rest.Config) *listwatch.Cluster {
	t.Helper()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := clients.With(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	custom, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	return Probed(t, client, listwatch.ClusterOptions{Probe: time.Second, Dynamic: custom, Logger: slog.New(slog.DiscardHandler)})
}
