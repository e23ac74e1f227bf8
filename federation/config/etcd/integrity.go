package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockPatience is how long another process may take to let go of the data.
const lockPatience = time.Second

// intact looks through the database of an embedded etcd that does not run: its
// structure must be whole, and no other process may have it open. etcd itself
// would wait for the other for ever, and find damage only where it reads.
func intact(dir string) (err error) {
	path := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damagedFile(path, fmt.Sprint(p))
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockPatience})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("another process uses %s; stop that one or name another folder", dir)
	case err != nil:
		return damagedFile(path, err.Error())
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		found := ""
		for err := range tx.Check() {
			if found == "" {
				found = err.Error()
			}
		}
		if found != "" {
			return damagedFile(path, found)
		}
		return walk(tx, path)
	})
}

// walk reads every key and value, so that what cannot be reached is found.
func walk(tx *bbolt.Tx, path string) error {
	return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
		bytes := 0
		err := b.ForEach(func(k, v []byte) error {
			bytes += len(k) + len(v)
			return nil
		})
		if err != nil {
			return damagedFile(path, err.Error())
		}
		return nil
	})
}

func damagedFile(path, why string) error {
	return fmt.Errorf("%s is damaged (%s); restore a backup of the folder, or remove it to begin with an empty store", path, why)
}
