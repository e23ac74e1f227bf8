package hub

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/hub/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAHubRunsWithoutAProcess: it is opened with the sample, answers GraphQL, and has
// given back its data folder and its addresses once it ended.
func TestAHubRunsWithoutAProcess(t *testing.T) {
	dir, err := os.MkdirTemp("", "hub-") // a path that fits an address of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	given := settings.Flags{
		Dev: true, DataDir: filepath.Join(dir, "data"), GraphQLAddr: "unix:" + filepath.Join(dir, "graphql"),
		XDSAddr: "unix:" + filepath.Join(dir, "xds"), HealthAddr: "unix:" + filepath.Join(dir, "health"),
	}
	for range 2 {
		askOnce(t, given)
	}
}

// askOnce starts a hub, asks for a service of the sample, and ends the hub.
func askOnce(t *testing.T, given settings.Flags) {
	t.Helper()
	s, err := settings.Resolve(given)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	s.Output = &log
	h, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	at, err := client.New(client.Options{URL: given.GraphQLAddr})
	if err != nil {
		t.Fatal(err)
	}
	if !serves(ctx, at, "hello.default.svc.cluster.local") {
		t.Error("the sample was not served")
	}
	at.Close()
	cancel()
	if err := <-ended; err != nil || !strings.Contains(log.String(), "the hub stopped") {
		t.Errorf("the hub ended with %v", err)
	}
	if t.Failed() {
		t.Log(log.String())
	}
}

// serves waits until the hub has the service of both clusters of the sample.
func serves(ctx context.Context, at *client.Client, hostname string) bool {
	namespace := "default"
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := client.ServiceByName(ctx, at, hostname, &namespace)
		if err == nil && answer.Service != nil && len(answer.Service.ClusterVIPs) == 2 {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
