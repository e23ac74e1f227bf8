package crd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/recordfile"
)

// unsaved is what of a cluster is not on disk.
type unsaved struct {
	whole  bool // everything
	things map[thing]struct{}
}

// changed notes that an object is another one than on disk; the caller holds mu.
func (c *cluster) changed(of thing) {
	if c.unsaved.things == nil {
		c.unsaved.things = map[thing]struct{}{}
	}
	c.unsaved.things[of] = struct{}{}
}

// saving is what one write does to the file of a cluster. A cluster that is gone has no file.
type saving struct {
	id     federation.ClusterID
	of     *cluster // nil: gone
	uid    string
	whole  bool
	things map[thing]*item // nil: deleted
}

// save writes what changed until the context ends, and once more then.
func (k *shelf) save(ctx context.Context) {
	recordfile.Save(ctx, k.wake, k.saveAll, func(err error) {
		k.of.o.Logger.Warn("custom resources of clusters are not on disk; a hub that starts while a cluster is away lacks them", slog.Any("err", err))
	})
}

// saveAll writes what is not on disk. What could not be written is tried again.
func (k *shelf) saveAll() (failed error) {
	for _, w := range k.unwritten() {
		err := k.write(w)
		if err == nil {
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("cluster %s: %w", w.id, err))
		if w.of != nil {
			k.of.mu.Lock()
			w.of.unsaved.whole = true
			k.of.mu.Unlock()
			k.notify()
		}
	}
	return failed
}

// unwritten takes what is to be written. Of a cluster that is not complete nothing is: a part
// of its configuration may mean something else than all of it.
func (k *shelf) unwritten() (all []saving) {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	for id := range k.gone {
		if k.of.clusters[id] == nil {
			all = append(all, saving{id: id})
		}
	}
	clear(k.gone)
	for id, c := range k.of.clusters {
		if !c.complete || c.identity == "" || !c.unsaved.whole && len(c.unsaved.things) == 0 {
			continue
		}
		w := saving{id: id, of: c, uid: c.identity, whole: c.unsaved.whole, things: map[thing]*item{}}
		for of := range c.unsaved.things {
			w.things[of] = nil
		}
		for p, t := range c.tables {
			c.collect(&w, p, t)
		}
		c.unsaved = unsaved{}
		all = append(all, w)
	}
	return all
}

// collect takes the objects of a table that are to be written.
func (c *cluster) collect(to *saving, p place, t *table) {
	if to.whole {
		for at, i := range t.items {
			to.things[thing{p.kind, at}] = i
		}
		return
	}
	for of := range c.unsaved.things {
		if i := t.items[of.at]; of.kind == p.kind && i != nil {
			to.things[of] = i
		}
	}
}

func (k *shelf) write(w saving) error {
	file := k.file(w.id)
	if w.of == nil {
		if err := os.Remove(file.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing what was read of it: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	var records []recordfile.Record
	for of, i := range w.things {
		r := recordfile.Record{Bucket: objectBucket, Key: of.keptKey()}
		if i != nil && i.object != nil {
			text, err := schema.JSON(map[string]any{
				"uid": string(i.uid), "apiVersion": i.object.APIVersion, "manifest": json.RawMessage(i.object.Manifest),
			})
			if err != nil {
				return fmt.Errorf("writing %s as JSON: %w", i.object.Key.Title(), err)
			}
			r.Value = text
		}
		records = append(records, r)
	}
	header := &keptHeader{Cluster: w.id, UID: w.uid, Saved: time.Now().UTC().Truncate(time.Second)}
	if w.whole {
		return file.Create(header, records)
	}
	return file.Update(header, records)
}

// notify has what changed written.
func (k *shelf) notify() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// changes notes that an object of the place changed; the caller holds mu.
func (p *placeSink) changes(c *cluster, at listwatch.Key) {
	if p.to.shelf.dir != "" {
		c.changed(thing{p.place.kind, at})
		p.to.shelf.notify()
	}
}
