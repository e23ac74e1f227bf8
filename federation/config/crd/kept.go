package crd

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/objectfile"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/recordfile"
	"isthmus.dev/isthmus/internal/wake"
)

// keptHeader describes the file of a cluster.
type keptHeader struct {
	recordfile.Stamp
	Cluster federation.ClusterID `json:"cluster"`
	UID     string               `json:"uid"` // of the cluster that gave the objects
	Saved   time.Time            `json:"saved"`
}

// diskCache keeps on disk what was read of clusters, for a hub that starts while one is away.
type diskCache struct {
	dir  string // empty: nothing is kept
	of   *Source
	wake wake.Signal
	gone map[federation.ClusterID]struct{} // clusters whose files are to be removed; guarded by mu of the source
}

// file is that of a cluster.
func (k *diskCache) file(id federation.ClusterID) recordfile.File {
	return objectfile.At(filepath.Join(k.dir, url.PathEscape(string(id))+".db"), "customResources", "a file of custom resources")
}

// restore gives a cluster what was read of it before the hub started, if it is the same
// cluster; the caller holds mu. What is not wanted any more is excluded. Each object is read
// again once the cluster answers.
func (k *diskCache) restore(c *cluster) {
	s := k.of
	if k.dir == "" || c.restored || c.identity == "" {
		return
	}
	c.restored = true
	var header keptHeader
	var items []*item
	right := func() error {
		if header.Cluster != c.id || header.UID != c.identity {
			return errors.New("it is of another cluster")
		}
		return nil
	}
	err := k.file(c.id).Read(&header, right, func(_ string, key, value []byte) error {
		i, err := keptItem(key, value)
		items = append(items, i)
		return err
	})
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.o.Logger.Warn("what was read of a cluster before the start is not used", slog.String("cluster", string(c.id)), slog.Any("err", err))
		}
		return
	}
	for _, i := range items {
		c.adopt(i)
	}
	c.complete, c.saved, s.stale = true, header.Saved, true
	s.touch(c.keys()...)
	s.o.Logger.Info("custom resources of a cluster are those of the last run", slog.String("cluster", string(c.id)),
		slog.Int("objects", len(items)), slog.Time("saved", header.Saved))
}

// keptItem decodes a record. Its version is empty: the hub may read the object in another way
// than the one that wrote it.
func keptItem(key, value []byte) (*item, error) {
	o, kept, err := objectfile.Read(key, value)
	if err != nil {
		return nil, err
	}
	return &item{at: listwatch.Key{Namespace: o.Key.Namespace, Name: o.Key.Name}, uid: types.UID(kept.UID), object: o}, nil
}

// adopt puts a restored object where it is wanted.
func (c *cluster) adopt(i *item) {
	for _, namespace := range []string{i.at.Namespace, ""} {
		p := place{i.object.Key.Of(), namespace}
		if _, wanted := c.want.places()[p]; wanted {
			c.table(p).set(i)
			return
		}
	}
}
