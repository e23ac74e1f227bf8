package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
)

const (
	partSize  = 128 << 10 // a value part, unless one manifest is larger
	batchSize = 256 << 10 // the values of one transaction of etcd's
	batchOps  = 100
	dropEvery = 1 << 20 // bytes that were written, before an embedded etcd drops them
)

// draft is a transaction that is to be staged: an index whose entries refer to
// the parts.
type draft struct {
	index
	parts   []part
	secrets []config.Secret // not staged: they are written with the head
}

// part is a value part, not yet put together: the manifests belong to the objects, and
// a copy of all of them would be as large as the commit.
type part struct {
	manifests [][]byte
	size      int // bytes
}

// add appends an entry, and the object's manifest to the parts. The manifest stays the
// caller's, and must not change until the draft is staged.
func (d *draft) add(e entry, manifest []byte) {
	if manifest != nil {
		last := len(d.parts) - 1
		if last < 0 || d.parts[last].size+len(manifest) > partSize && d.parts[last].size > 0 {
			d.parts = append(d.parts, part{})
			last++
		}
		p := &d.parts[last]
		e.Part, e.Offset = last, p.size
		e.Length, e.Digest = len(manifest), digest(manifest)
		p.manifests, p.size = append(p.manifests, manifest), p.size+len(manifest)
	}
	d.Entries = append(d.Entries, e)
}

// staged is a transaction that is complete in etcd and not known yet.
type staged struct {
	id, hash string
	root     int64 // etcd's revision of its root
	size     int   // bytes
}

var errCollected = errors.New("what was staged took too long and was collected")

// writer stages transactions, makes them known, and removes what is not needed any more.
type writer struct {
	store  *Store
	client *clientv3.Client
	o      *ConfigOptions
	step   *steps
	read   records
}

// stage writes the draft where no reader looks yet. What it has written when it
// fails is collected later.
func (w writer) stage(ctx context.Context, d *draft) (staged, error) {
	t := staged{id: rand.Text()}
	index, hash, err := d.encode()
	if err != nil {
		return t, err
	}
	t.hash = hash
	root, err := sealed(txRoot{Time: w.o.Now()})
	if err != nil {
		return t, err
	}
	b := batch{w: w, t: &t}
	b.put(rootKey(t.id), root)
	for i, part := range d.parts {
		if err := b.add(ctx, partKey(valueFolder(t.id), i), part.size, part.manifests...); err != nil {
			return t, err
		}
		t.size += part.size
	}
	for i, part := range index {
		if err := b.add(ctx, partKey(indexFolder(t.id), i), len(part), part); err != nil {
			return t, err
		}
		t.size += len(part)
	}
	return t, b.flush(ctx)
}

// batch gathers puts of one transaction into as few of etcd's as its limits
// allow.
type batch struct {
	w    writer
	t    *staged
	ops  []clientv3.Op
	size int
	kept int // bytes that an embedded etcd may hold in memory
}

func (b *batch) put(key, value string) {
	b.ops, b.size = append(b.ops, clientv3.OpPut(key, value)), b.size+len(value)
}

// add puts what the texts of that size are together.
func (b *batch) add(ctx context.Context, key string, size int, texts ...[]byte) error {
	if len(b.ops) > 0 && (b.size+size > batchSize || len(b.ops) == batchOps) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.put(key, seal(texts...))
	return nil
}

// flush writes what is gathered. All but the first want the root to be there
// still.
func (b *batch) flush(ctx context.Context) error {
	if len(b.ops) == 0 {
		return nil
	}
	if err := b.w.step.reach("stage"); err != nil {
		return err
	}
	root := rootKey(b.t.id)
	answer, err := b.w.client.Txn(repeatably(ctx)).If(clientv3.Compare(clientv3.ModRevision(root), "=", b.t.root)).
		Then(b.ops...).Else(clientv3.OpGet(root)).Commit()
	if err != nil {
		return err
	}
	at := answer.Header.Revision
	if !answer.Succeeded {
		// The first batch makes the root: if it is there, an earlier try made it,
		// whose answer was lost.
		made := answer.Responses[0].GetResponseRange().Kvs
		if b.t.root != 0 || len(made) == 0 {
			return errCollected
		}
		at = made[0].ModRevision
	}
	if b.t.root == 0 {
		b.t.root = at
	}
	b.kept, b.ops, b.size = b.kept+b.size, nil, 0
	if b.kept >= dropEvery {
		b.w.store.wrote(ctx, b.kept, dropMeanwhile)
		b.kept = 0
	}
	return nil
}

// publication makes a staged transaction known: these puts, if those compares
// hold.
type publication struct {
	revision int64
	ifs      []clientv3.Cmp
	puts     []clientv3.Op
	orElse   []clientv3.Op
}

func (w writer) publish(ctx context.Context, t staged, p publication) (*clientv3.TxnResponse, error) {
	if err := w.step.reach("publish"); err != nil {
		return nil, err
	}
	root, err := sealed(txRoot{Known: p.revision, Time: w.o.Now()})
	if err != nil {
		return nil, err
	}
	ifs := append(p.ifs, clientv3.Compare(clientv3.ModRevision(rootKey(t.id)), "=", t.root),
		clientv3.Compare(clientv3.Value(epochKey), "=", w.store.epoch))
	answer, err := w.client.Txn(repeatably(ctx)).If(ifs...).Then(append(p.puts,
		clientv3.OpPut(rootKey(t.id), root))...).Else(p.orElse...).Commit()
	if err != nil {
		return nil, err
	}
	w.store.wrote(ctx, t.size, dropFor)
	return answer, w.step.reach("published")
}

// discard removes what was staged and never will be known. What it does not
// reach is collected later.
func (w writer) discard(ctx context.Context, t staged) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := w.removeStaged(ctx, t.id, t.root); err != nil {
		w.o.Logger.Debug("an abandoned transaction is left for garbage collection", "tx", t.id, "err", err)
	}
}

// removeStaged removes a transaction whose root is of etcd's revision still:
// nothing has made it known, and nothing can from then on.
func (w writer) removeStaged(ctx context.Context, id string, root int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, w.o.Patience)
	defer cancel()
	answer, err := w.client.Txn(repeatably(ctx)).If(clientv3.Compare(clientv3.ModRevision(rootKey(id)), "=", root)).
		Then(clientv3.OpDelete(txFolder(id), clientv3.WithPrefix())).Commit()
	return err == nil && answer.Succeeded, err
}
