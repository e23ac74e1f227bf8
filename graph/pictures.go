package graph

import (
	"bytes"
	"container/list"
	"crypto/rand"
	"encoding/binary"
	"sync"

	"isthmus.dev/isthmus/graph/model"
)

const (
	// changesList names the cursors of changes among others.
	changesList = "changes"
	// mostPictures is how many pictures are kept for subscribers that come back.
	// Each keeps its snapshot, which shares what did not change with others.
	mostPictures = 1024
)

// pictures are what subscribers have seen last, by their cursors. It is safe for
// concurrent use.
type pictures struct {
	process [8]byte // of the cursors of this process
	mu      sync.Mutex
	byUse   *list.List // of kept, the latest first
	found   map[string]*list.Element
}

type kept struct {
	cursor string
	picture
}

func newPictures() *pictures {
	p := &pictures{byUse: list.New(), found: map[string]*list.Element{}}
	_, _ = rand.Read(p.process[:]) // Never fails.
	return p
}

// cursor names a picture: exactly, for this process, and by its content, for
// every other.
func (p *pictures) cursor(of picture, epoch string) string {
	key := append([]byte(nil), p.process[:]...)
	key = binary.BigEndian.AppendUint64(key, of.snapshot.Version())
	return model.Cursor(changesList, string(append(key, of.content(epoch, of.digest)...)))
}

// hasContent tells whether the cursor is that of a picture of this content.
func hasContent(cursor string, content []byte) bool {
	key, ok := model.CursorKey(changesList, cursor)
	const own = 16
	return ok && len(key) > own && bytes.Equal([]byte(key)[own:], content)
}

// keep remembers the picture under the cursor, for as long as not too many others
// are used. A picture of a later snapshot may take the place of one, where
// nothing that is followed changed.
func (p *pictures) keep(cursor string, of picture) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, known := p.found[cursor]; known {
		e.Value = kept{cursor, of}
		p.byUse.MoveToFront(e)
		return
	}
	p.found[cursor] = p.byUse.PushFront(kept{cursor, of})
	if p.byUse.Len() > mostPictures {
		oldest := p.byUse.Remove(p.byUse.Back()).(kept)
		delete(p.found, oldest.cursor)
	}
}

// get returns the picture of a subscriber that follows the same things.
func (p *pictures) get(cursor string, f following) (picture, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.found[cursor]
	if !ok || e.Value.(kept).following != f {
		return picture{}, false
	}
	p.byUse.MoveToFront(e)
	return e.Value.(kept).picture, true
}
