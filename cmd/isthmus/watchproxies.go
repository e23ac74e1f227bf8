package main

import (
	"context"
	"slices"
	"time"

	"isthmus.dev/isthmus/client"
)

// proxyLook is how often proxies are looked at that are watched: no subscription
// tells of them.
const proxyLook = time.Second

// watchProxies shows what became of proxies until the context ends.
func (w *watcher) watchProxies(ctx context.Context) error {
	again := time.NewTicker(proxyLook)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil // whoever ends a watch has seen enough
		}
		err := w.lookAtProxies(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case client.Passes(err):
			w.lost(err, proxyLook)
		case err != nil:
			return err
		}
	}
}

// lookAtProxies shows which proxies came, went or changed since the look before.
func (w *watcher) lookAtProxies(ctx context.Context) error {
	ctx, cancel := w.within(ctx)
	defer cancel()
	var found []item
	at := map[string]int{}
	for one, err := range w.hubItems(ctx, hubProxies, w.which) {
		if err != nil {
			return err
		}
		if len(w.names) > 0 && one.cells[1] != w.names[0].name {
			continue
		}
		if i, twice := at[one.id]; twice {
			found[i] = one // the later one of its streams
			continue
		}
		at[one.id] = len(found)
		found = append(found, one)
	}
	w.seen = map[string]bool{}
	for _, one := range found {
		if err := w.now(one); err != nil {
			return err
		}
	}
	return w.forget()
}

// sameProxy compares what a table shows, apart from its age.
func (w *watcher) sameProxy(before, one item) bool {
	const ageCell = 6
	visible := func(of item) []string {
		cells := slices.Clone(of.cells)
		cells[ageCell] = ""
		return w.cells(w.target, hubHeads(hubProxies), cells)
	}
	return slices.Equal(visible(before), visible(one))
}
