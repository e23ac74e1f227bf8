package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// epochFile lies beside the folder of an embedded etcd and has its epoch, so that
// the files of another store in its place are noticed.
func epochFile(dir string) string { return filepath.Clean(dir) + ".epoch" }

// sameStore tells whether the folder holds the store that it held before. The
// first time it takes a note of it.
func sameStore(dir, epoch string) error {
	path := epochFile(dir)
	known, err := os.ReadFile(path)
	switch {
	case err == nil && strings.TrimSpace(string(known)) == epoch:
		return nil
	case err == nil:
		return fmt.Errorf("opening the embedded etcd in %s: its data is of another store; restore a backup of this one, or remove %s to take that one over", dir, path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.WriteFile(path+".new", []byte(epoch+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
