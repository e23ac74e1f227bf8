package crd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/objectfile"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/recordfile"
)

// unsaved is what of a cluster is not on disk.
type unsaved struct {
	whole   bool // everything
	objects map[federation.ObjectKey]struct{}
}

// changed notes that an object is another one than on disk; the caller holds mu.
func (c *cluster) changed(key federation.ObjectKey) {
	if c.unsaved.objects == nil {
		c.unsaved.objects = map[federation.ObjectKey]struct{}{}
	}
	c.unsaved.objects[key] = struct{}{}
}

// saving is what one write does to the file of a cluster. A cluster that is gone has no file.
type saving struct {
	id    federation.ClusterID
	of    *cluster // nil: gone
	uid   string
	whole bool
	items map[federation.ObjectKey]*item // nil: deleted
}

// save writes what changed until the context ends, and once more then.
func (k *diskCache) save(ctx context.Context) {
	recordfile.Save(ctx, k.wake, k.saveAll, func(err error) {
		k.of.o.Logger.Warn("custom resources of clusters are not on disk; a hub that starts while a cluster is away lacks them",
			slog.Any("err", err))
	})
}

// saveAll writes what is not on disk. What could not be written is tried again.
func (k *diskCache) saveAll() (failed error) {
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
		}
	}
	return failed
}

// unwritten takes what is to be written. Of a cluster that is not complete nothing is: a part
// of its configuration may mean something else than all of it.
func (k *diskCache) unwritten() (all []saving) {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	for id := range k.gone {
		if k.of.clusters[id] == nil {
			all = append(all, saving{id: id})
		}
	}
	clear(k.gone)
	for id, c := range k.of.clusters {
		if !c.complete || c.identity == "" || !c.unsaved.whole && len(c.unsaved.objects) == 0 {
			continue
		}
		w := saving{id: id, of: c, uid: c.identity, whole: c.unsaved.whole, items: map[federation.ObjectKey]*item{}}
		for key := range c.unsaved.objects {
			w.items[key] = nil
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
			to.items[keyOf(p.kind, at)] = i
		}
		return
	}
	for key := range c.unsaved.objects {
		if i := t.items[listwatch.Key{Namespace: key.Namespace, Name: key.Name}]; key.Of() == p.kind && i != nil {
			to.items[key] = i
		}
	}
}

func (k *diskCache) write(w saving) error {
	file := k.file(w.id)
	if w.of == nil {
		if err := os.Remove(file.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing what was read of it: %w", err)
		}
		return nil
	}
	records := make([]recordfile.Record, 0, len(w.items))
	for key, i := range w.items {
		r := objectfile.Deleted(key)
		if i != nil && i.object != nil {
			var err error
			r, err = objectfile.Record(key, objectfile.Object{UID: string(i.uid), APIVersion: i.object.APIVersion, Manifest: i.object.Manifest})
			if err != nil {
				return err
			}
		}
		records = append(records, r)
	}
	return file.Write(w.whole, &keptHeader{Cluster: w.id, UID: w.uid, Saved: time.Now().UTC().Truncate(time.Second)}, records)
}

// changes notes that an object of the place changed; the caller holds mu.
func (p *placeSink) changes(c *cluster, at listwatch.Key) {
	if p.to.cache.dir != "" {
		c.changed(keyOf(p.place.kind, at))
		p.to.cache.wake.Notify()
	}
}
