package crd

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/text"
)

// placeSink takes what a reader reads of one place.
type placeSink struct {
	by    *clusterReader
	to    *Source
	place place
	share *listwatch.Share
	name  string // of the resource
	table *table // that was listed last; nil: none. Guarded by mu
}

// within calls do with the cluster, unless it is not read any more, and tells Run. It
// reports whether the context has not ended.
func (p *placeSink) within(ctx context.Context, do func(*cluster)) bool {
	p.to.mu.Lock()
	defer p.to.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	if c := p.to.clusters[p.by.id]; c != nil {
		do(c)
		p.to.wake.Notify()
	}
	return true
}

// active is the table of the place if this reader is the one that counts, else nil.
func (p *placeSink) active(c *cluster) *table {
	if t := c.tables[p.place]; t != nil && t.turn == p.by.turn {
		return t
	}
	return nil
}

// doubtful reports whether a list lacks so much that it is read again.
func (p *placeSink) doubtful(items []*item) (lacks bool) {
	p.to.mu.Lock()
	defer p.to.mu.Unlock()
	c := p.to.clusters[p.by.id]
	return c != nil && c.tables[p.place] != nil && c.tables[p.place].lacks(items)
}

// Listed is part of listwatch.Sink.
func (p *placeSink) Listed(ctx context.Context, items []*item, _ uint64) bool {
	return p.within(ctx, func(c *cluster) {
		t := c.table(p.place)
		if t.turn > p.by.turn {
			return
		}
		t.turn, p.table, c.saved = p.by.turn, t, time.Time{}
		listed := make(map[listwatch.Key]bool, len(items))
		for _, i := range items {
			listed[i.at] = true
			p.set(c, t, i)
		}
		for at := range t.items {
			if !listed[at] {
				p.drop(c, t, at)
			}
		}
		p.share.Replaced(t.used)
		if _, failed := c.failed[p.place]; failed {
			delete(c.failed, p.place)
			p.to.stale = true
		}
		delete(c.pending, p.place)
		p.to.finish(c)
	})
}

// Set is part of listwatch.Sink.
func (p *placeSink) Set(ctx context.Context, i *item) bool {
	return p.within(ctx, func(c *cluster) {
		if t := p.active(c); t != nil {
			p.set(c, t, i)
			p.share.Took(i.size(), t.used)
		}
	})
}

// Deleted is part of listwatch.Sink.
func (p *placeSink) Deleted(ctx context.Context, at listwatch.Key) bool {
	return p.within(ctx, func(c *cluster) {
		if t := p.active(c); t != nil {
			p.drop(c, t, at)
			p.share.Holds(t.used)
		}
	})
}

func (p *placeSink) set(c *cluster, t *table, i *item) {
	before := t.items[i.at]
	if before == i {
		return
	}
	p.to.stale = p.to.stale || i.isFaulty() || before != nil && before.isFaulty()
	t.set(i)
	p.changes(c, i.at)
	p.to.touch(c.keyOf(p.place.kind, i.at))
	p.to.report(c, p.place, t.items[i.at])
}

func (p *placeSink) drop(c *cluster, t *table, at listwatch.Key) {
	p.to.stale = p.to.stale || t.bad[at] != nil
	t.remove(at)
	p.changes(c, at)
	p.to.touch(c.keyOf(p.place.kind, at))
	p.to.reportDeleted(c, p.place, at)
}

// Following is part of listwatch.Sink.
func (p *placeSink) Following(ctx context.Context, err error) {
	switch {
	case listwatch.Interrupted(err), listwatch.EndsAtOnce(err):
		return // the status of the cluster says so, or it is read again
	case apierrors.IsNotFound(err):
		p.by.relook.Notify()
		return
	}
	p.within(ctx, func(c *cluster) {
		if t := c.tables[p.place]; t != nil && t.turn > p.by.turn {
			return // another reader counts
		}
		_, failed := c.failed[p.place]
		if err == nil {
			p.to.stale = p.to.stale || failed
			delete(c.failed, p.place)
			return
		}
		p.to.stale = true
		c.failed[p.place] = p.failure(err)
		delete(c.pending, p.place)
		p.to.finish(c)
	})
}

func (p *placeSink) failure(err error) config.Problem {
	where := "in all namespaces"
	if p.place.namespace != "" {
		where = "in namespace " + p.place.namespace
	}
	why := listwatch.Message(err, kube.Explain)
	if apierrors.IsForbidden(err) {
		why += ", as " + manifestOf(p.place.kind) + " does"
	}
	return config.Problem{Code: codeUnreadable, Object: fmt.Sprintf("%s of %s", p.name, named(p.by.id)), Message: text.Cut(fmt.Sprintf(
		"%s: %s; what was read before stays", where, why), mostMessage)}
}
