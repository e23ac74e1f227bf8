package transport

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// documents remembers valid documents, the least recently used go first. It is
// bounded by the bytes of their texts, which it does not keep.
type documents struct {
	most int

	mu    sync.Mutex
	bytes int
	used  *list.List // Of *known, the latest first.
	byKey map[[sha256.Size]byte]*list.Element
}

type known struct {
	key      [sha256.Size]byte
	size     int
	document *ast.QueryDocument
}

func newDocuments(limits Limits) *documents {
	return &documents{most: limits.Documents, used: list.New(), byKey: make(map[[sha256.Size]byte]*list.Element)}
}

func (d *documents) has(text string) bool {
	_, ok := d.Get(context.Background(), text)
	return ok
}

// Get returns the document whose text was added before.
func (d *documents) Get(_ context.Context, text string) (*ast.QueryDocument, bool) {
	key := sha256.Sum256([]byte(text))
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.byKey[key]
	if !ok {
		return nil, false
	}
	d.used.MoveToFront(found)
	return found.Value.(*known).document, true
}

// Add remembers a valid document until newer ones need its place.
func (d *documents) Add(_ context.Context, text string, document *ast.QueryDocument) {
	key := sha256.Sum256([]byte(text))
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.byKey[key]; ok || len(text) > d.most {
		return
	}
	d.byKey[key] = d.used.PushFront(&known{key: key, size: len(text), document: document})
	d.bytes += len(text)
	for d.bytes > d.most {
		oldest := d.used.Remove(d.used.Back()).(*known)
		delete(d.byKey, oldest.key)
		d.bytes -= oldest.size
	}
}
