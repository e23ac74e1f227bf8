package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Keys are the keys of one key file. The newest seals, and all open. Keys are
// safe for concurrent use.
type Keys struct {
	path    string
	current atomic.Pointer[ring]
	writing sync.Mutex
}

// ring is the content of the file at one time.
type ring struct {
	handle   *keyset.Handle
	envelope tink.AEAD
	newest   uint32
	ids      []uint32
	text     []byte // as the file has it
}

func (r *ring) has(id uint32) bool { return slices.Contains(r.ids, id) }

func (k *Keys) ring() *ring { return k.current.Load() }

// ErrNoKeys is the error of OpenKeys where there is no file, and none may be
// made.
var ErrNoKeys = errors.New("the key file is missing, and there are secrets that were sealed with its keys; " +
	"put it back, or copy that of another hub of this store, or remove those secrets")

// OpenKeys reads the key file. One that is missing is made, readable for its
// owner alone, if it may be: that is where nothing is sealed yet (S28).
func OpenKeys(path string, mayMake bool) (*Keys, error) {
	k := &Keys{path: path}
	text, err := readKeyFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !mayMake:
		err = ErrNoKeys
	case errors.Is(err, fs.ErrNotExist):
		text, err = makeKeyFile(path)
	}
	if err == nil {
		err = k.take(text)
	}
	if err == nil {
		err = removeLeftovers(path, time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("opening the key file %s: %w", path, err)
	}
	return k, nil
}

// take makes the content of a key file the keys in use.
func (k *Keys) take(text []byte) error {
	r, err := readRing(text)
	if err != nil {
		return err
	}
	k.current.Store(r)
	return nil
}

// Newest names the key that seals. What KeyID says otherwise of was sealed
// before it came, and can be resealed.
func (k *Keys) Newest() string { return name(k.ring().newest) }

// IDs are the names of all keys, in the order of the file.
func (k *Keys) IDs() []string {
	var all []string
	for _, id := range k.ring().ids {
		all = append(all, name(id))
	}
	return all
}

// Reload reads what is new in the key file. After an error the keys are what
// they were.
func (k *Keys) Reload() (changed bool, err error) {
	k.writing.Lock()
	defer k.writing.Unlock()
	text, err := readKeyFile(k.path)
	if err == nil && bytes.Equal(text, k.ring().text) {
		return false, nil
	}
	if err == nil {
		err = k.take(text)
	}
	if err != nil {
		return false, fmt.Errorf("reading the key file %s: %w", k.path, err)
	}
	return true, nil
}

// Rotate adds a key that seals from now on; the others still open.
func (k *Keys) Rotate() error {
	return k.change(func(m *keyset.Manager) error {
		id, err := m.Add(aead.AES256GCMKeyTemplate())
		if err != nil {
			return err
		}
		return m.SetPrimary(id)
	})
}

// Drop removes a key with which nothing is sealed any more. The newest cannot be
// dropped.
func (k *Keys) Drop(id string) error {
	return k.change(func(m *keyset.Manager) error {
		for _, known := range k.ring().ids {
			if name(known) == id && known != k.ring().newest {
				return m.Delete(known)
			}
		}
		return fmt.Errorf("key %s is the newest, or does not exist", id)
	})
}

func (k *Keys) change(how func(*keyset.Manager) error) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	m := keyset.NewManagerFromHandle(k.ring().handle)
	err := how(m)
	var handle *keyset.Handle
	if err == nil {
		handle, err = m.Handle()
	}
	var text []byte
	if err == nil {
		text, err = writeRing(handle)
	}
	if err == nil {
		err = replaceKeyFile(k.path, text)
	}
	if err == nil {
		err = k.take(text)
	}
	if err != nil {
		return fmt.Errorf("changing the key file %s: %w", k.path, err)
	}
	return nil
}

var errNoRing = errors.New("it holds no keys in Tink's JSON form; if it is damaged, put a copy of it back")

// readRing reads a key set of AES-256-GCM keys. Its errors hold nothing of the
// text.
func readRing(text []byte) (*ring, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		return nil, errNoRing
	}
	r := &ring{handle: handle, text: text}
	for i := range handle.Len() {
		e, err := handle.Entry(i)
		if err != nil {
			return nil, errNoRing
		}
		if e.KeyStatus() != keyset.Enabled {
			continue
		}
		r.ids = append(r.ids, e.KeyID())
		if e.IsPrimary() {
			r.newest = e.KeyID()
		}
	}
	if err := newEnvelope(r); err != nil || !r.has(r.newest) {
		return nil, errNoRing
	}
	return r, nil
}

func writeRing(handle *keyset.Handle) ([]byte, error) {
	var text bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text)); err != nil {
		return nil, err
	}
	return append(text.Bytes(), '\n'), nil
}
