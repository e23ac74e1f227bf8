package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// What etcd leaves waiting over a database that it cannot open stays.
func TestMain(m *testing.M) {
	if dir := os.Getenv(committer); dir != "" {
		commitForEver(dir)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.etcd.io/etcd/server/v3/storage.OpenBackend"))
}

func open(t *testing.T, dir string) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(context.Background(), etcd.Options{DataDir: dir, Patience: configtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEmbeddedKeepsItsEpochAndValues(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	first := open(t, dir)
	epoch := first.Epoch()
	if _, err := first.Client().Put(context.Background(), "/isthmus/v1/x", "1"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	defer second.Close()
	got, err := second.Client().Get(context.Background(), "/isthmus/v1/x")
	if err != nil || got.Count != 1 {
		t.Errorf("after a restart the value is %v, %v", got, err)
	}
	testSharedValues(t, second)
	if second.Epoch() != epoch || epoch == "" {
		t.Errorf("the epoch was %q and is %q after a restart", epoch, second.Epoch())
	}
	other := open(t, filepath.Join(t.TempDir(), "etcd"))
	defer other.Close()
	if other.Epoch() == epoch {
		t.Error("two stores have the same epoch")
	}
}

func TestEmbeddedListensNowhere(t *testing.T) {
	before := listening(t)
	s := open(t, filepath.Join(t.TempDir(), "etcd"))
	defer s.Close()
	for socket := range listening(t) {
		if !before[socket] {
			t.Errorf("the embedded etcd listens: %s", socket)
		}
	}
}

// listening returns this process's listening TCP and unix sockets.
func listening(t *testing.T) map[string]bool {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(fds) == 0 {
		t.Fatalf("reading /proc/self/fd: %d, %v", len(fds), err)
	}
	mine := map[string]bool{}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "socket:[") {
			mine[strings.Trim(target, "socket:[]")] = true
		}
	}
	found := map[string]bool{}
	for _, table := range []struct {
		name          string
		state, inode  int
		listeningMark string
	}{{"tcp", 3, 9, "0A"}, {"tcp6", 3, 9, "0A"}, {"unix", 3, 6, "00010000"}} {
		data, err := os.ReadFile("/proc/self/net/" + table.name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) > table.inode && f[table.state] == table.listeningMark && mine[f[table.inode]] {
				found[fmt.Sprint(table.name, " ", f)] = true
			}
		}
	}
	return found
}

func TestDamagedDataIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "member", "snap", "db"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := etcd.Open(context.Background(), etcd.Options{DataDir: dir})
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a damaged store opens with %v", err)
	}
}

func TestEndedContextLeavesNothingBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := filepath.Join(t.TempDir(), "etcd")
	if _, err := etcd.Open(ctx, etcd.Options{DataDir: dir}); err == nil {
		t.Error("it opens although its context has ended")
	}
	if err := open(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

func TestRestOfAnInterruptedFirstStartIsNoHindrance(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	half := filepath.Join(dir+".new", "member", "wal")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "0000000000000000-0000000000000000.wal"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + ".new"); err == nil {
		t.Error("the rest stays")
	}
}

// TestClosedStoreHoldsNobodyUp: those who still follow it end when they shall.
func TestClosedStoreHoldsNobodyUp(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "etcd"))
	var stops []func()
	for range 2 {
		recorder, stop := configtest.Listen(t, s.Config(eager()))
		recorder.WaitRevision(t, 0)
		stops = append(stops, func() {
			recorder.Wait(t, "trouble", func(s configtest.Seen) bool { return strings.HasPrefix(s.Codes(), "UNREACHABLE") })
			stop()
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, stop := range stops {
		stop()
	}
}

func TestUnreachableEndpointIsNamedInTime(t *testing.T) {
	clock, began := testbed.StartClock(t), time.Now()
	_, err := etcd.Open(context.Background(), etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}, Patience: time.Second})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("the error is %v and does not name the endpoint", err)
	}
	if took := clock.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestLogGoesThroughSlog(t *testing.T) {
	var log bytes.Buffer
	s, err := etcd.Open(context.Background(), etcd.Options{
		DataDir: filepath.Join(t.TempDir(), "etcd"),
		Logger:  slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"msg":"etcd: starting an etcd server"`) {
		t.Errorf("the log is %.500s", log.String())
	}
	if strings.Contains(log.String(), "missing term") {
		t.Errorf("a first start alarms its reader: %s", log.String())
	}
}

// Of several who change a shared value at once, one does.
func testSharedValues(t *testing.T, s *etcd.Store) {
	t.Helper()
	one, two := s.Shared("authority"), s.Shared("authority")
	if value, revision, err := one.Load(t.Context()); err != nil || revision != 0 || value != nil {
		t.Errorf("before it was stored: %q at %d, %v", value, revision, err)
	}
	if saved, err := one.Save(t.Context(), []byte("first"), 0); err != nil || !saved {
		t.Fatalf("saved %t, %v", saved, err)
	}
	if saved, err := two.Save(t.Context(), []byte("late"), 0); err != nil || saved {
		t.Errorf("a value that came between is overwritten: %t, %v", saved, err)
	}
	_, revision, err := two.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if saved, err := two.Save(t.Context(), []byte("second"), revision); err != nil || !saved {
		t.Errorf("saved %t, %v", saved, err)
	}
	if value, _, err := one.Load(t.Context()); err != nil || string(value) != "second" {
		t.Errorf("it is %q, %v", value, err)
	}
	if _, err := s.Client().Put(t.Context(), "/isthmus/v1/shared/authority", "damaged"); err != nil {
		t.Fatal(err)
	}
	if value, _, err := one.Load(t.Context()); err == nil {
		t.Errorf("a damaged value is read as %q", value)
	}
}
