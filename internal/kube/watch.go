package kube

import (
	"context"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/internal/filewatch"
)

// FileHandler gets the changes of a watched folder. Each call holds the changes of one look, in the order of their IDs;
// the first call comes after the first complete look and may be empty. It is never called concurrently; while it runs,
// no look is taken. It owns the events.
type FileHandler interface {
	FilesChanged(ctx context.Context, events []FileEvent)
}

// WatchOptions set how a folder is watched. Zero values have the defaults named here.
type WatchOptions struct {
	Check    func(content []byte) error // what makes content good; its error must hold no secret; nil: any content
	Debounce time.Duration              // how long a file must be untouched to count as whole; default 200 ms
	Poll     time.Duration              // look at least this often, whatever the file system says; default 2 s
	Logger   *slog.Logger               // default: slog.Default()
}

// Folder watches a folder of kubeconfigs, one file a cluster.
type Folder struct {
	dir     string
	options WatchOptions
}

// WatchDir names the folder to watch; Run watches it.
func WatchDir(dir string, options WatchOptions) *Folder {
	if options.Debounce <= 0 {
		options.Debounce = 200 * time.Millisecond
	}
	if options.Poll <= 0 {
		options.Poll = 2 * time.Second
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return &Folder{dir: dir, options: options}
}

// Run watches until the context ends and then returns its error. A folder that cannot be read is a Problem with an empty
// ID, never the absence of its files: Run retries, and Ready with an empty ID means that it can be read again.
func (f *Folder) Run(ctx context.Context, handler FileHandler) error {
	folders := filewatch.Open(filewatch.Options{Dir: f.dir, Debounce: f.options.Debounce, Poll: f.options.Poll, Logger: f.options.Logger})
	defer folders.Close()
	looker := &poller{folder: f, state: newFolder(f.options.Check)}
	var held []FileEvent
	for looks := 1; ctx.Err() == nil; looks++ {
		folders.Follow(f.dir)
		events, again := looker.poll()
		held = append(held, events...)
		first := !looker.delivered && (!again || looks >= firstLooks)
		if first || looker.delivered && len(held) > 0 {
			handler.FilesChanged(ctx, held)
			held, looker.delivered = nil, true
		}
		folders.Wait(ctx, again)
	}
	return ctx.Err()
}

// firstLooks is how many looks the first call waits for files that are still being written.
const firstLooks = 5

// poller reads the folder again and again, and reports trouble of the folder itself.
type poller struct {
	folder    *Folder
	state     *folder
	broken    bool
	delivered bool
}

func (l *poller) poll() (events []FileEvent, again bool) {
	files, err := list(l.folder.dir, time.Now(), l.folder.options.Debounce)
	if err != nil {
		if !l.broken {
			l.broken = true
			events = []FileEvent{{Kind: FileProblem, Problem: Finding{
				Code: CodeFolder, Field: l.folder.dir,
				Message: "the folder cannot be read; the clusters that are attached stay",
			}}}
		}
		return events, false
	}
	events, again = l.state.step(files)
	if l.broken {
		l.broken = false
		events = append([]FileEvent{{Kind: FileReady}}, events...)
	}
	return events, again
}
