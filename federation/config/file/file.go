// Package file is a read-only source of configuration: a folder of manifests
// that is followed while it changes. What cannot be used is named, and what was
// good before stays (B-Y3, B-Y4, B-Y5, B-Y7).
package file

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/filewatch"
)

// Schema knows the kinds and validates objects; a schema.Set does. It is used by
// several goroutines at once.
type Schema interface {
	Lookup(apiVersion, kind string) (schema.Kind, *schema.Problem)
	Admit(wanted map[string]any) (schema.Admitted, []schema.Problem)
}

// Options say what is read and how. Zero fields from Debounce on have the defaults
// named here.
type Options struct {
	Dir      string // the folder, with all below it
	Kinds    []federation.Kind
	Schema   Schema
	Debounce time.Duration // how long a file must be left alone to count as whole or gone; default 200 ms
	Poll     time.Duration // between looks when the system gives no notice; default 5 s
	// Hold is how long more than half of at least 20 objects must have been missing
	// before they are gone; default 5 s.
	Hold     time.Duration
	Manifest manifest.Limits
	Files    int   // the most files and folders; default 10,000
	Bytes    int64 // the most bytes of all files; default 256 MiB
	Logger   *slog.Logger
}

func (o *Options) fill() {
	o.Debounce, o.Poll, o.Hold = or(o.Debounce, 200*time.Millisecond), or(o.Poll, 5*time.Second), or(o.Hold, 5*time.Second)
	o.Files, o.Bytes = or(o.Files, 10_000), or(o.Bytes, 256<<20)
	o.Manifest.Bytes, o.Manifest.Problems = or(o.Manifest.Bytes, 16<<20), or(o.Manifest.Problems, 20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func or[N int | int64 | time.Duration](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}

// Source is a config.Source.
type Source struct {
	o    Options
	tree *tree
}

// New names the folder; Run reads it.
func New(o Options) *Source {
	o.fill()
	return &Source{o: o, tree: newTree(o)}
}

// Kinds is part of config.Source.
func (s *Source) Kinds() []federation.Kind { return s.o.Kinds }

// Run is part of config.Source. It runs once at a time; what was good in the run
// before stays. The first Update waits until the folder can be read.
func (s *Source) Run(ctx context.Context, to config.Sink) error {
	folders := filewatch.Open(filewatch.Options{Dir: s.o.Dir, Debounce: s.o.Debounce, Poll: s.o.Poll, Logger: s.o.Logger})
	defer folders.Close()
	first := true
	s.tree.said = nil
	for ctx.Err() == nil {
		again := s.reload(to, folders, &first)
		folders.Wait(ctx, again)
	}
	return nil
}

// reload reads the folder once. It reports whether it has to be read again soon.
func (s *Source) reload(to config.Sink, folders *filewatch.Folders, first *bool) (again bool) {
	l, err := list(s.o)
	if err != nil {
		s.tree.complain(to, []config.Problem{unreadable(s.o.Dir, err)})
		return true
	}
	defer l.close()
	folders.Follow(l.paths()...)
	t := s.tree
	if t.replaced(l) {
		t.complain(to, []config.Problem{{Code: codeUnreadable, Message: fmt.Sprintf(
			"the folder %s is another one than before, and empty: what was read stays until there is a file in it, or the hub is started again",
			s.o.Dir)}})
		return false
	}
	read, whole, again := t.read(l, time.Now())
	if !whole {
		return true
	}
	events, problems, held := t.take(read, time.Now())
	if *first {
		*first, events = false, t.given.Everything()
		to.Update(config.Update{Revision: t.given.Revision, Full: true, Events: events})
	} else if len(events) > 0 {
		to.Update(config.Update{Revision: t.given.Revision, Events: events})
	}
	t.complain(to, problems)
	return again || held
}
