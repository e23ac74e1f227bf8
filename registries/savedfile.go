package registries

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

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/durable"
)

// A file is a bbolt database: one record per service and workload, and a header.
// The header holds a digest over all records, changed in the same transaction as
// they are, since bbolt itself does not notice damage.
const (
	headerBucket   = "lastKnownGood"
	serviceBucket  = "services"
	workloadBucket = "workloads"
)

var headerKey = []byte("header")

// savedFormat is the version of the files; a higher one is refused.
const savedFormat = 2

// maxSaved is the largest file that is read, in bytes.
const maxSaved = 1 << 30

// savedHeader describes a file.
type savedHeader struct {
	Format   int                  `json:"format"`
	Cluster  federation.ClusterID `json:"cluster"`
	Provider federation.Provider  `json:"provider"`
	UID      string               `json:"uid,omitempty"`
	Network  federation.NetworkID `json:"network,omitempty"`
	Owner    string               `json:"owner,omitempty"` // see Cluster.Owner
	Saved    time.Time            `json:"saved"`
	Digest   digest               `json:"digest"`
}

// digest is the exclusive or of the hashes of a set of records: it does not
// depend on their order, and a record is added and removed alike.
type digest [sha256.Size]byte

func (d *digest) toggle(bucket string, key, value []byte) {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(bucket), key, value} {
		_, _ = fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part)
	}
	for i, b := range h.Sum(nil) {
		d[i] ^= b
	}
}

// savedRecord is the new value of one record; nil deletes it.
type savedRecord struct {
	bucket     string
	key, value []byte
}

// savedChange is what one write does to a file.
type savedChange struct {
	whole   bool // the records are all that the file is to hold
	header  savedHeader
	records []savedRecord
}

var errNoSavedState = errors.New("it is not a last known good state")

// inSaved runs the function in a transaction on a file that exists. What bbolt
// answers to damaged pages is returned as an error: a panic, or a fault of the
// memory that maps the file.
func inSaved(path string, readOnly bool, do func(*bbolt.Tx) error) (err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSaved {
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
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: readOnly, NoStatistics: true, OpenFile: existing})
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

// readSaved refuses what was not written, whole, for this very shard.
func readSaved(path string, shard federation.ShardKey) (s *saved, err error) {
	err = inSaved(path, true, func(tx *bbolt.Tx) error { s, err = readAll(tx, shard); return err })
	if err != nil {
		return nil, err
	}
	return s, nil
}

func readAll(tx *bbolt.Tx, shard federation.ShardKey) (*saved, error) {
	header, err := readHeader(tx)
	if err != nil {
		return nil, err
	}
	if header.Cluster != shard.Cluster || header.Provider != shard.Provider {
		return nil, fmt.Errorf("it is the state of %s/%s", header.Cluster, header.Provider)
	}
	s := &saved{savedHeader: header, services: map[federation.ServiceKey]*federation.Shard{}, workloads: map[federation.WorkloadKey]*federation.Workload{}}
	var found digest
	for _, bucket := range []string{serviceBucket, workloadBucket} {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil, errNoSavedState
		}
		if err := b.ForEach(func(k, v []byte) error {
			found.toggle(bucket, k, v)
			return s.add(bucket, k, v)
		}); err != nil {
			return nil, err
		}
	}
	if found != header.Digest {
		return nil, errors.New("its checksum does not match: it is damaged")
	}
	return s, nil
}

func readHeader(tx *bbolt.Tx) (h savedHeader, err error) {
	b := tx.Bucket([]byte(headerBucket))
	if b == nil {
		return h, errNoSavedState
	}
	if err := json.Unmarshal(b.Get(headerKey), &h); err != nil || h.Format < 1 {
		return h, errNoSavedState
	}
	if h.Format > savedFormat {
		return h, fmt.Errorf("its format %d is newer than %d, which this version supports", h.Format, savedFormat)
	}
	return h, nil
}

// createSaved puts a new file into the place of the old one. After a crash, the
// old or the new one is there. Only its owner may read it.
func createSaved(path string, c savedChange) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	err = f.Close()
	if err == nil {
		err = fill(f.Name(), c)
	}
	if err == nil {
		err = durable.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func fill(path string, c savedChange) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoStatistics: true})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(c.apply), db.Close())
}

func (c *savedChange) apply(tx *bbolt.Tx) error {
	buckets := map[string]*bbolt.Bucket{}
	for _, name := range []string{headerBucket, serviceBucket, workloadBucket} {
		b, err := tx.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		buckets[name] = b
	}
	header := c.header
	header.Format = savedFormat
	if !c.whole {
		before, err := readHeader(tx)
		if err != nil {
			return err
		}
		header.Digest = before.Digest
	}
	// Out of order, each new record would move all that belong behind it.
	slices.SortFunc(c.records, func(a, b savedRecord) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), bytes.Compare(a.key, b.key))
	})
	for _, r := range c.records {
		if err := header.Digest.put(buckets[r.bucket], r); err != nil {
			return err
		}
	}
	data, err := json.Marshal(header)
	if err != nil {
		return err
	}
	return buckets[headerBucket].Put(headerKey, data)
}

// put writes the record and brings the digest along.
func (d *digest) put(b *bbolt.Bucket, r savedRecord) error {
	if old := b.Get(r.key); old != nil {
		d.toggle(r.bucket, r.key, old)
	}
	if r.value == nil {
		return b.Delete(r.key)
	}
	d.toggle(r.bucket, r.key, r.value)
	return b.Put(r.key, r.value)
}

// ownerOf reads the owner of a shard's file; "" where there is none to be read.
func (d *savedStates) ownerOf(shard federation.ShardKey) (owner string) {
	defer d.lock(shard)()
	_ = inSaved(d.path(shard), true, func(tx *bbolt.Tx) error {
		h, err := readHeader(tx)
		owner = h.Owner
		return err
	})
	return owner
}
