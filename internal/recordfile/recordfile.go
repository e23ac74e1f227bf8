// Package recordfile keeps records on disk: one file, a bbolt database, with buckets of records
// and a header. The header has a digest over all records, changed in the same transaction as
// they are, since bbolt itself does not notice damage. What is not whole is refused.
package recordfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"isthmus.dev/isthmus/internal/durable"
)

// maxSize is the largest file that is read, in bytes.
const maxSize = 1 << 30

var headerKey = []byte("header")

// File is a file of a kind.
type File struct {
	Path    string
	Header  string   // the bucket of the header
	Buckets []string // of records
	Format  int      // of the files; a higher one is refused
	Title   string   // for errors: what the file is
}

// Stamp is the part of a header that is the same in all kinds of files.
type Stamp struct {
	Format int    `json:"format"`
	Digest Digest `json:"digest"`
}

func (s *Stamp) stamp() *Stamp { return s }

// Header describes a file: a pointer to a struct that JSON writes, and that embeds a Stamp.
type Header interface{ stamp() *Stamp }

// Record is the new value of one record; nil deletes it.
type Record struct {
	Bucket     string
	Key, Value []byte
}

// Digest is the exclusive or of the hashes of a set of records: it does not
// depend on their order, and a record is added and removed alike.
type Digest [sha256.Size]byte

func (d *Digest) toggle(bucket string, key, value []byte) {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(bucket), key, value} {
		_, _ = fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part)
	}
	for i, b := range h.Sum(nil) {
		d[i] ^= b
	}
}

// put writes the record and brings the digest along.
func (d *Digest) put(b *bbolt.Bucket, r Record) error {
	if old := b.Get(r.Key); old != nil {
		d.toggle(r.Bucket, r.Key, old)
	}
	if r.Value == nil {
		return b.Delete(r.Key)
	}
	d.toggle(r.Bucket, r.Key, r.Value)
	return b.Put(r.Key, r.Value)
}

// ReadHeader reads the header alone.
func (f File) ReadHeader(to Header) error {
	return f.within(true, func(tx *bbolt.Tx) error { return f.header(tx, to) })
}

// Read reads the header, asks whether it is the right one, and adds each record. An error means
// that what was added may be damaged, or not all. Keys and values are valid during the call.
func (f File) Read(to Header, right func() error, add func(bucket string, key, value []byte) error) error {
	return f.within(true, func(tx *bbolt.Tx) error {
		if err := f.header(tx, to); err != nil {
			return err
		}
		if err := right(); err != nil {
			return err
		}
		var found Digest
		for _, bucket := range f.Buckets {
			b := tx.Bucket([]byte(bucket))
			if b == nil {
				return f.strange()
			}
			err := b.ForEach(func(k, v []byte) error {
				found.toggle(bucket, k, v)
				return add(bucket, k, v)
			})
			if err != nil {
				return err
			}
		}
		if found != to.stamp().Digest {
			return errors.New("its checksum does not match: it is damaged")
		}
		return nil
	})
}

func (f File) strange() error { return fmt.Errorf("it is not %s", f.Title) }

func (f File) header(tx *bbolt.Tx, to Header) error {
	b := tx.Bucket([]byte(f.Header))
	if b == nil {
		return f.strange()
	}
	err := json.Unmarshal(b.Get(headerKey), to)
	switch format := to.stamp().Format; {
	case err != nil || format < 1:
		return f.strange()
	case format > f.Format:
		return fmt.Errorf("its format %d is newer than %d, which this version supports", format, f.Format)
	}
	return nil
}

// Create puts a new file into the place of the old one. After a crash, the
// old or the new one is there. Only its owner may read it.
func (f File) Create(header Header, records []Record) error {
	temporary, err := os.CreateTemp(filepath.Dir(f.Path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	err = temporary.Close()
	if err == nil {
		err = f.fill(temporary.Name(), header, records)
	}
	if err == nil {
		err = durable.Rename(temporary.Name(), f.Path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

func (f File) fill(path string, header Header, records []Record) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoStatistics: true, InitialMmapSize: room(records)})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(func(tx *bbolt.Tx) error { return f.apply(tx, header, Digest{}, records) }), db.Close())
}

// room is the memory to map for a file of these records: whenever bbolt has to map more, it
// copies what it has so far. Half of each page may stay empty.
func room(records []Record) int {
	size := 0
	for _, r := range records {
		size += 2 * (len(r.Key) + len(r.Value) + overhead)
	}
	return min(size, maxSize)
}

// overhead is about what bbolt takes for a record beside its key and value.
const overhead = 32

// Update writes the records that changed into a file that exists, and the header.
func (f File) Update(header Header, records []Record) error {
	return f.within(false, func(tx *bbolt.Tx) error {
		var before struct{ Stamp }
		if err := f.header(tx, &before); err != nil {
			return err
		}
		return f.apply(tx, header, before.Digest, records)
	})
}

func (f File) apply(tx *bbolt.Tx, header Header, digest Digest, records []Record) error {
	buckets := map[string]*bbolt.Bucket{}
	for _, name := range append([]string{f.Header}, f.Buckets...) {
		b, err := tx.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		buckets[name] = b
	}
	// Out of order, each new record would move all that belong behind it.
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.Key, b.Key))
	})
	for _, r := range records {
		if err := digest.put(buckets[r.Bucket], r); err != nil {
			return err
		}
	}
	*header.stamp() = Stamp{Format: f.Format, Digest: digest}
	data, err := json.Marshal(header)
	if err != nil {
		return err
	}
	return buckets[f.Header].Put(headerKey, data)
}

// within runs the function in a transaction on a file that exists. What bbolt
// answers to damaged pages is returned as an error: a panic, or a fault of the
// memory that maps the file.
func (f File) within(readOnly bool, do func(*bbolt.Tx) error) (err error) {
	info, err := os.Lstat(f.Path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSize {
		return errors.New("it is not a regular file of at most 1 GiB")
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it is damaged: %v", p)
		}
	}()
	db, err := bbolt.Open(f.Path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: readOnly, NoStatistics: true, OpenFile: existing})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	whole := func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return errors.New("it is cut off")
		}
		return do(tx)
	}
	if readOnly {
		return db.View(whole)
	}
	return db.Update(whole)
}

// existing opens a file without making one.
func existing(path string, flag int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag&^os.O_CREATE, mode)
}
