package file

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notices are the file system's own words that something changed. Where they are
// not to be had, looks come by the clock alone.
type notices struct {
	o       Options
	watcher *fsnotify.Watcher // nil: none
	said    bool
}

func openNotices(o Options) *notices {
	n := &notices{o: o}
	var err error
	if n.watcher, err = fsnotify.NewWatcher(); err != nil {
		n.watcher = nil
		o.Logger.Warn("the folder of configuration is looked at by the clock only", "dir", o.Dir, "interval", o.Poll, "err", err)
	}
	return n
}

func (n *notices) close() {
	if n.watcher != nil {
		_ = n.watcher.Close() // nothing is lost
	}
}

// follow watches these folders and no others.
func (n *notices) follow(folders []string) {
	if n.watcher == nil {
		return
	}
	watched := n.watcher.WatchList()
	wanted := make([]string, len(folders))
	for i, folder := range folders {
		wanted[i] = filepath.Join(n.o.Dir, folder)
		if slices.Contains(watched, wanted[i]) {
			continue
		}
		if err := n.watcher.Add(wanted[i]); err != nil && !n.said {
			n.said = true
			n.o.Logger.Warn("changes in a folder of configuration are found by the clock only", "dir", wanted[i], "interval", n.o.Poll, "err", err)
		}
	}
	for _, folder := range watched {
		if !slices.Contains(wanted, folder) {
			_ = n.watcher.Remove(folder) // it may be gone
		}
	}
}

// wait returns when another look makes sense: when what is unsettled may have
// settled, else a little after a notice, or when it is time.
func (n *notices) wait(ctx context.Context, again bool) {
	if again {
		pause(ctx, n.o.Settle)
		return
	}
	var events <-chan fsnotify.Event
	var errors <-chan error
	if n.watcher != nil {
		events, errors = n.watcher.Events, n.watcher.Errors
	}
	timer := time.NewTimer(n.o.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-errors:
	case <-events:
		pause(ctx, n.o.Settle/4)
		drain(events)
	}
}

func drain(events <-chan fsnotify.Event) {
	for {
		select {
		case <-events:
		default:
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
