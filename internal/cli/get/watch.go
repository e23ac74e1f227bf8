package get

import (
	"context"
	"fmt"
	"time"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

// watcher shows the changes of one resource type, as the hub's change feed reports them.
type watcher struct {
	io      cmdutil.Streams
	asked   *getting
	of      resource.Target
	only    string          // what name returns of the one that was named; "": all
	shown   map[string]item // by key, as they were last shown
	seen    map[string]bool // keys of the whole state, while it is read again; else nil
	streams proxyStreams
}

// watchItems follows what was shown until the context ends.
func watchItems(ctx context.Context, s *session.Session, g *getting, t resource.Target, shown []item) error {
	w := &watcher{io: s.IO, asked: g, of: t, shown: map[string]item{}, streams: proxyStreams{}}
	if len(t.Names) == 1 && len(shown) > 0 {
		w.only = w.name(shown[0])
	}
	for _, one := range shown {
		w.shown[one.key] = one
		if !g.isTable() {
			if err := w.print(added, one); err != nil {
				return err
			}
		}
	}
	err := s.Follow(ctx, client.Following{Filter: w.filter(), Objects: t.Hub == "", Lost: w.lost}, w.take)
	if ctx.Err() != nil {
		return nil // interrupting a watch is how it ends
	}
	return err
}

func (w *watcher) lost(err error, again time.Duration) {
	_, _ = fmt.Fprintf(w.io.Err, "%v; trying again in %s\n", err, again.Round(time.Millisecond)) // its own error cannot be shown
}

func (w *watcher) filter() *client.ChangeFilter {
	f := &client.ChangeFilter{}
	switch w.of.Hub {
	case resource.Services:
		f.Kinds = []client.ChangeKind{client.ChangeKindService}
	case resource.Clusters:
		f.Kinds = []client.ChangeKind{client.ChangeKindCluster, client.ChangeKindCounts}
	case resource.Networks:
		f.Kinds = []client.ChangeKind{client.ChangeKindNetwork}
	case resource.Proxies:
		f.Kinds = []client.ChangeKind{client.ChangeKindProxy}
	default:
		f.Kinds = []client.ChangeKind{client.ChangeKindConfigObject, client.ChangeKindDelivery}
		f.ObjectGroup, f.ObjectKind = &w.of.Kind.Group, &w.of.Kind.Kind
	}
	switch {
	case !w.of.Namespaced():
	case len(w.of.Names) == 1:
		f.Namespace = &w.of.Names[0].Namespace
	default:
		f.Namespace = w.asked.which.namespace
	}
	return f
}

// take shows what an event changes. Of the whole state it shows only what differs from
// what was shown.
func (w *watcher) take(e client.Event) error {
	if e.Begins {
		w.seen, w.streams = map[string]bool{}, proxyStreams{}
	}
	for _, c := range w.changes(e) {
		if c.err != nil {
			return c.err
		}
		if err := w.change(c); err != nil {
			return err
		}
	}
	if e.Resync && e.Cursor != nil {
		return w.forget()
	}
	return nil
}

// change shows one thing after its change.
func (w *watcher) change(c change) error {
	switch {
	case w.only != "" && w.name(c.now) != w.only:
		return nil
	case c.gone || !w.asked.which.fits(c.now):
		if before, known := w.shown[c.now.key]; known {
			return w.printDeleted(before)
		}
		return nil
	}
	return w.now(c.now)
}

// name is what one that is named has: objects of several clusters may be of one name.
func (w *watcher) name(one item) string {
	if w.of.Hub == "" {
		return one.id
	}
	return one.key
}

// forget shows as gone what the whole state does not have.
func (w *watcher) forget() error {
	for key, one := range w.shown {
		if !w.seen[key] {
			if err := w.printDeleted(one); err != nil {
				return err
			}
		}
	}
	w.seen = nil
	return nil
}

func (w *watcher) now(one item) error {
	if w.seen != nil {
		w.seen[one.key] = true
	}
	before, known := w.shown[one.key]
	w.shown[one.key] = one
	switch {
	case !known:
		return w.print(added, one)
	case w.same(before, one):
		return nil
	}
	return w.print(modified, one)
}
