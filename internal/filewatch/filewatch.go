// Package filewatch reports that files may have changed: when the file system notifies it, and
// at regular intervals otherwise. The caller reads the files to find out what changed.
package filewatch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"isthmus.dev/isthmus/internal/retry"
)

// Options say what is watched. All fields are needed.
type Options struct {
	Dir      string        // for the log: the folder, or the one that holds them all
	Debounce time.Duration // how long a file must be left alone to count as whole
	Poll     time.Duration // a look is due at least this often, whatever the file system says
	Logger   *slog.Logger
}

// Folders are watched folders. They are for one goroutine.
type Folders struct {
	o       Options
	watcher *fsnotify.Watcher // nil: there are no notices
	warned  bool
}

// Open watches nothing yet; Follow says what. The user closes it.
func Open(o Options) *Folders {
	f := &Folders{o: o}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.warn(err)
		return f
	}
	f.watcher = watcher
	return f
}

// Close ends the watch.
func (f *Folders) Close() {
	if f.watcher != nil {
		_ = f.watcher.Close() // nothing is lost
	}
}

// Follow watches these folders and no others. A folder that does not exist is watched
// once Follow is called while it does.
func (f *Folders) Follow(paths ...string) {
	if f.watcher == nil {
		return
	}
	watched := f.watcher.WatchList()
	for _, path := range paths {
		if slices.Contains(watched, path) {
			continue
		}
		if err := f.watcher.Add(path); err != nil {
			f.warn(err)
		}
	}
	for _, path := range watched {
		if !slices.Contains(paths, path) {
			_ = f.watcher.Remove(path) // it may be gone
		}
	}
}

// warn says once that changes are found later.
func (f *Folders) warn(err error) {
	if !f.warned {
		f.warned = true
		f.o.Logger.Warn("the file system gives no notice of changes; they are found by polling", "dir", f.o.Dir, "interval", f.o.Poll, "err", err)
	}
}

// Wait returns when another look makes sense: after the debounce time while something
// is changing, else shortly after a notice, or when a look is due, or when the
// context ends.
func (f *Folders) Wait(ctx context.Context, changing bool) {
	if changing {
		retry.Sleep(ctx, f.o.Debounce)
		return
	}
	var notices <-chan fsnotify.Event
	var failures <-chan error
	if f.watcher != nil {
		notices, failures = f.watcher.Events, f.watcher.Errors
	}
	due := time.NewTimer(f.o.Poll)
	defer due.Stop()
	select {
	case <-ctx.Done():
	case <-due.C:
	case <-failures:
	case <-notices:
		retry.Sleep(ctx, f.o.Debounce/4) // one change often has several notices
		drain(notices)
	}
}

func drain(notices <-chan fsnotify.Event) {
	for {
		select {
		case <-notices:
		default:
			return
		}
	}
}
