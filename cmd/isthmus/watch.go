package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"isthmus.dev/isthmus/client"
)

// watcher shows what changes of one sort of things.
type watcher struct {
	*session
	*getting
	target
	mu    sync.Mutex      // events and polls come beside each other
	shown map[string]item // by ID, as they were last shown
	seen  map[string]bool // while the whole picture comes anew
}

// watch follows what was shown until the context ends.
func (s *session) watch(ctx context.Context, g *getting, t target, shown []item) error {
	if len(t.names) == 1 && len(shown) == 1 {
		t.names = []named{{namespace: t.names[0].namespace, name: shown[0].cells[1]}} // in full
	}
	w := &watcher{session: s, getting: g, target: t, shown: map[string]item{}}
	for _, one := range shown {
		w.shown[one.id] = one
		if !g.isTable() {
			if err := w.print(added, one); err != nil {
				return err
			}
		}
	}
	if t.hub == hubProxies || t.hub == hubNetworks {
		return w.poll(ctx)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	polled := make(chan error, 1)
	go func() {
		err := w.poll(ctx)
		stop(err)
		polled <- err
	}()
	err := s.Follow(ctx, client.Following{Filter: w.filter(), Lost: s.lost}, func(e client.Event) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.take(ctx, e)
	})
	if ctx.Err() == nil {
		stop(nil)
		<-polled
		return err
	}
	return <-polled // nil: whoever ends a watch has seen enough
}

func (s *session) lost(err error, again time.Duration) {
	_, _ = fmt.Fprintf(s.io.err, "%v; trying again in %s\n", err, again.Round(time.Millisecond)) // nobody to tell if it fails
}

func (w *watcher) filter() *client.ChangeFilter {
	kind := client.ChangeKindConfigObject
	switch w.hub {
	case hubServices:
		kind = client.ChangeKindService
	case hubClusters:
		kind = client.ChangeKindCluster
	}
	f := &client.ChangeFilter{Kinds: []client.ChangeKind{kind}}
	if w.namespaced() {
		f.Namespace = w.which.namespace
	}
	return f
}

// take shows what an event changes. Of a whole picture it shows only what is not
// as it was shown.
func (w *watcher) take(ctx context.Context, e client.Event) error {
	if e.Begins {
		w.seen = map[string]bool{}
	}
	for _, c := range e.Services {
		if err := w.put(serviceItem(c.Service))(c.Action); err != nil {
			return err
		}
	}
	for _, c := range e.Clusters {
		if err := w.put(clusterItem(c.Cluster))(c.Action); err != nil {
			return err
		}
	}
	for _, c := range e.ConfigObjects {
		if err := w.object(ctx, c); err != nil {
			return err
		}
	}
	if e.Resync && e.Cursor != nil {
		return w.forget()
	}
	return nil
}

// forget shows what is no part of the whole picture as gone.
func (w *watcher) forget() error {
	for id, one := range w.shown {
		if !w.seen[id] {
			if err := w.gone(one); err != nil {
				return err
			}
		}
	}
	w.seen = nil
	return nil
}

// put shows a thing of the hub's own after an action.
func (w *watcher) put(one item, err error) func(client.ChangeAction) error {
	return func(action client.ChangeAction) error {
		switch {
		case err != nil || len(w.names) > 0 && one.cells[1] != w.names[0].name:
			return err
		case action == client.ChangeActionDelete:
			return w.gone(one)
		}
		return w.now(one)
	}
}

// object shows an object of the configuration after a change.
func (w *watcher) object(ctx context.Context, c client.ConfigObjectChange) error {
	r := c.Object
	if r.Group != w.kind.Group || r.Kind != w.kind.Kind || len(w.names) > 0 && r.Name != w.names[0].name {
		return nil
	}
	before, known := w.shown[refName(r)]
	if c.Action == client.ChangeActionDelete {
		if !known {
			return nil
		}
		return w.gone(before)
	}
	if known && before.revision == orEmpty(r.Revision) {
		w.see(before)
		return nil
	}
	ctx, cancel := w.within(ctx)
	defer cancel()
	answer, err := client.Object(ctx, w, r.Group, r.Kind, &r.Namespace, r.Name, nil)
	if err != nil || answer.ConfigObject == nil {
		return err
	}
	one, err := objectItem(*answer.ConfigObject)
	if err != nil || !w.which.fits(one) {
		return err
	}
	return w.now(one)
}

func (w *watcher) see(one item) {
	if w.seen != nil {
		w.seen[one.id] = true
	}
}

func (w *watcher) now(one item) error {
	w.see(one)
	before, known := w.shown[one.id]
	w.shown[one.id] = one
	switch {
	case !known:
		return w.print(added, one)
	case w.same(before, one):
		return nil
	}
	return w.print(modified, one)
}

// same tells that there is nothing new to show.
func (w *watcher) same(before, one item) bool {
	if w.isTable() {
		return w.sameRow(before, one)
	}
	if w.hub == "" {
		return before.revision == one.revision
	}
	return jsonText(before.value, "") == jsonText(one.value, "")
}

func (w *watcher) gone(one item) error {
	delete(w.shown, one.id)
	switch w.output.sort {
	case "json", "yaml":
		return w.print(deleted, one)
	case "table", "wide":
	default:
		_, err := fmt.Fprintf(w.io.err, "%s is gone\n", one.id)
		return err
	}
	cells := append([]string(nil), one.cells...)
	for i := 2; i < len(cells); i++ {
		cells[i] = "-"
	}
	cells[2] = "gone"
	return w.row(cells)
}

// What became of a thing that is watched, in the words of Kubernetes.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
)

// print shows a thing. As JSON and YAML it is an event, as kubectl get -w
// --output-watch-events writes them.
func (w *watcher) print(became string, one item) error {
	switch w.output.sort {
	case "table", "wide":
		return w.row(one.cells)
	case "name":
		_, err := fmt.Fprintln(w.io.out, one.id)
		return err
	case "json":
		_, err := fmt.Fprintln(w.io.out, jsonText(map[string]any{"type": became, "object": one.value}, ""))
		return err
	case "yaml":
		if _, err := fmt.Fprintln(w.io.out, "---"); err != nil {
			return err
		}
		return w.output.printValue(w.io.out, map[string]any{"type": became, "object": one.value})
	}
	return w.output.printValue(w.io.out, one.value)
}

func (w *watcher) row(cells []string) error {
	w.table.add(w.cells(w.target, w.heads(), cells)...)
	return w.table.flush()
}
