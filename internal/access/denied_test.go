package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// A workload on the deny list gets nothing from the moment the file says so: what
// is open ends, and nothing opens any more, whatever it proves. A file that cannot
// be read takes nothing back.
func TestR12DeniedWorkloadsGetNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "denied")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	write("# nobody yet\n")
	w := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true}})
	w.proofs["web"] = authority.Proof{
		Workload: workload("shop", "web"), Clusters: []federation.ClusterID{"c1"},
		Ends: time.Now().Add(time.Hour),
	}
	denied, err := OpenDenied(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.o.Denied, denied.every = denied, time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- denied.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	who, err := w.Identify(call{certificate: "web"}.context(t))
	if err != nil || w.Allow(who, webNode) != nil {
		t.Fatalf("before it is denied: %v, %v", err, w.Allow(who, webNode))
	}
	wait := func(what string, want bool) {
		t.Helper()
		testbed.WaitFor(t, 5*time.Minute, what, func() error {
			if err := w.Allow(who, webNode); (err != nil) != want {
				return fmt.Errorf("it may: %w", err)
			}
			return nil
		})
		_, err := w.Identify(call{certificate: "web"}.context(t))
		if (status.Code(err) == codes.Unauthenticated) != want || want && !strings.Contains(err.Error(), "identity.denyFile") {
			t.Errorf("%s: it proves itself: %v", what, err)
		}
	}
	id := workload("shop", "web").String()
	write(id + "\n")
	wait("its ID to be denied", true)
	write(id + "-other\n")
	wait("another's ID to be denied", false)
	write(strings.TrimSuffix(id, "web") + "*\n")
	wait("its namespace to be denied", true)
	write("shop/web\n")
	wait("a list that cannot be read to change nothing", true)
	if _, err := OpenDenied(path, nil); err == nil || !strings.Contains(err.Error(), "denied:1") {
		t.Errorf("a hub starts with it: %v", err)
	}
}
