package filewatch

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// open watches with a poll that never comes in a test, so that only notices end a wait.
func open(t *testing.T) (*Folders, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	f := Open(Options{Dir: "folder", Debounce: time.Millisecond, Poll: time.Hour, Logger: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(f.Close)
	return f, log
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestANoticeEndsTheWait(t *testing.T) {
	f, _ := open(t)
	dir := t.TempDir()
	f.Follow(dir)
	write(t, filepath.Join(dir, "file"))
	f.Wait(t.Context(), false)
}

func TestAFolderThatIsMadeAgainIsWatchedAgain(t *testing.T) {
	f, log := open(t)
	dir := filepath.Join(t.TempDir(), "folder")
	f.Follow(dir)
	if !strings.Contains(log.String(), "by polling") {
		t.Errorf("there is no warning about a folder that does not exist: %q", log)
	}
	for range 2 {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		f.Follow(dir)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		for len(f.watcher.WatchList()) > 0 {
			f.Wait(t.Context(), false) // for the notice that it is gone
		}
	}
	if strings.Count(log.String(), "by polling") != 1 {
		t.Errorf("the warning is repeated:\n%s", log)
	}
}

func TestOtherFoldersAreNotWatched(t *testing.T) {
	f, _ := open(t)
	one, other := t.TempDir(), t.TempDir()
	f.Follow(one, other)
	f.Follow(other)
	if watched := f.watcher.WatchList(); len(watched) != 1 || watched[0] != other {
		t.Errorf("%q are watched", watched)
	}
}

func TestPollingEndsTheWait(t *testing.T) {
	f := &Folders{o: Options{Debounce: time.Hour, Poll: time.Millisecond, Logger: slog.Default()}}
	f.Follow(t.TempDir())
	f.Wait(t.Context(), false)
}
