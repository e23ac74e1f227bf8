package main

import (
	"context"
	"slices"
	"time"

	"isthmus.dev/isthmus/client"
)

// pollEvery is how often what is watched is read again: no subscription tells of
// proxies, of what they acknowledged, and of counts.
const pollEvery = time.Second

// poll shows what became of things until the context ends.
func (w *watcher) poll(ctx context.Context) error {
	again := time.NewTicker(pollEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil // whoever ends a watch has seen enough
		}
		err := w.pollOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case client.Passes(err):
			w.lost(err, pollEvery)
		case err != nil:
			return err
		}
	}
}

// pollOnce shows what came, went or changed since the look before.
func (w *watcher) pollOnce(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := w.within(ctx)
	defer cancel()
	found, err := w.found(ctx)
	if err != nil || w.seen != nil { // a whole picture that is on its way tells all of it
		return err
	}
	w.seen = map[string]bool{}
	for _, one := range found {
		if err := w.now(one); err != nil {
			return err
		}
	}
	return w.forget()
}

// found is all that is watched, each thing once.
func (w *watcher) found(ctx context.Context) ([]item, error) {
	all := *w.getting
	t := w.target
	if len(t.names) > 0 {
		all.which.name = &t.names[0].name
		t.names = nil // one that is not there is no error
	}
	var found []item
	at := map[string]int{}
	for one, err := range w.wanted(ctx, &all, t) {
		if err != nil {
			return nil, err
		}
		if len(w.names) > 0 && one.cells[1] != w.names[0].name {
			continue
		}
		if i, twice := at[one.id]; twice {
			found[i] = one // the later one of a proxy's streams
			continue
		}
		at[one.id] = len(found)
		found = append(found, one)
	}
	return found, nil
}

// sameRow compares what a table shows, apart from ages.
func (w *watcher) sameRow(before, one item) bool {
	h := w.heads()
	visible := func(of item) []string {
		cells := slices.Clone(of.cells)
		for i, name := range h.names {
			if name == "AGE" || name == "LAST-EVENT" {
				cells[i] = ""
			}
		}
		return w.cells(w.target, h, cells)
	}
	return slices.Equal(visible(before), visible(one))
}

// heads are the columns of what is watched.
func (w *watcher) heads() heads {
	if w.hub != "" {
		return hubHeads(w.hub)
	}
	return objectHeads(w.kind)
}
