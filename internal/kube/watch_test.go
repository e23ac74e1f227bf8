package kube

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// recorder hands each call to the test.
type recorder chan []FileEvent

func (r recorder) FilesChanged(ctx context.Context, events []FileEvent) {
	select {
	case r <- events:
	case <-ctx.Done():
	}
}

func (r recorder) next(t *testing.T) string {
	t.Helper()
	patience := time.NewTimer(time.Minute)
	defer patience.Stop()
	select {
	case events := <-r:
		return printed(events)
	case <-patience.C:
		t.Fatal("no event")
		return ""
	}
}

func watching(t *testing.T, dir string) recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events, done := make(recorder), make(chan error)
	watch := WatchDir(dir, WatchOptions{Check: goodUnlessBad, Debounce: 20 * time.Millisecond, Poll: 100 * time.Millisecond})
	go func() { done <- watch.Run(ctx, events) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run ended with %v", err)
		}
		goleak.VerifyNone(t)
	})
	return events
}

// put writes the file in one step: a writer that a busy machine stops halfway leaves a file that looks settled.
func put(t *testing.T, path, content string) {
	t.Helper()
	half := filepath.Join(filepath.Dir(path), ".half")
	must(t, os.WriteFile(half, []byte(content), 0o600))
	must(t, os.Rename(half, path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, events recorder, want string) {
	t.Helper()
	if got := events.next(t); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestWatchDirFollowsFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.yaml"), "1")
	put(t, filepath.Join(dir, ".hidden"), "1")
	put(t, filepath.Join(dir, "a.yaml~"), "1")
	events := watching(t, dir)
	expect(t, events, "ready a=1")
	put(t, filepath.Join(dir, "b.kubeconfig"), "1")
	expect(t, events, "ready b=1")
	put(t, filepath.Join(dir, "a.yaml"), "BAD")
	expect(t, events, "problem a exec a.yaml")
	put(t, filepath.Join(dir, "a.yaml"), "2")
	expect(t, events, "ready a=2")
	must(t, os.Remove(filepath.Join(dir, "b.kubeconfig")))
	expect(t, events, "gone b")
}

func TestWatchDirStartsEmpty(t *testing.T) {
	expect(t, watching(t, t.TempDir()), "")
}

func TestWatchDirFollowsConfigMapSwap(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"..1", "..2"} {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		put(t, filepath.Join(dir, version, "a.yaml"), version)
	}
	must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	events := watching(t, dir)
	expect(t, events, "ready a=..1")
	must(t, os.Symlink("..2", filepath.Join(dir, "..new")))
	must(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	expect(t, events, "ready a=..2")
}

func TestWatchDirLosesNothingWithTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	must(t, os.Mkdir(dir, 0o700))
	put(t, filepath.Join(dir, "a"), "1")
	events := watching(t, dir)
	expect(t, events, "ready a=1")
	must(t, os.Rename(dir, dir+"2"))
	expect(t, events, "problem  folder ")
	must(t, os.Rename(dir+"2", dir))
	expect(t, events, "ready =")
	put(t, filepath.Join(dir, "a"), "2")
	expect(t, events, "ready a=2")
}

func TestLookRefusesWhatIsNoFile(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, filepath.Join(outside, "secret"), canary)
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "absolute")))
	must(t, os.Symlink("../"+filepath.Base(outside)+"/secret", filepath.Join(dir, "escape")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	put(t, filepath.Join(dir, "large"), strings.Repeat("x", MaxKubeconfig+1))
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(t, err)
	defer listener.Close()
	look, err := list(dir, time.Now(), 0)
	must(t, err)
	got := map[string]Code{}
	for _, file := range look {
		got[file.name] = file.problem.Code
		if len(file.content) > 0 {
			t.Errorf("%s was read", file.name)
		}
	}
	for name, want := range map[string]Code{
		"absolute": CodeNotAFile, "escape": CodeNotAFile, "dangling": CodeNotAFile, "loop": CodeNotAFile,
		"folder": CodeNotAFile, "pipe": CodeNotAFile, "socket": CodeNotAFile, "large": CodeTooLarge,
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "good"), "x")
	put(t, filepath.Join(dir, "large"), strings.Repeat("x", MaxKubeconfig+1))
	if content, err := ReadFile(filepath.Join(dir, "good")); err != nil || string(content) != "x" {
		t.Errorf("got %q, %v", content, err)
	}
	for _, name := range []string{"large", "absent", "."} {
		if _, err := ReadFile(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
