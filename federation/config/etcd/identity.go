package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"isthmus.dev/isthmus/internal/durable"
)

// epochFile is beside the folder of an embedded etcd and has its epoch, so that
// the files of another store in its place are noticed.
func epochFile(dir string) string { return filepath.Clean(dir) + ".epoch" }

// sameStore checks that the folder holds the store that it held before. The
// first time it takes a note of it, and also where the note is cut short: an older
// isthmus could leave one so in a crash.
func sameStore(dir, epoch string) error {
	path := epochFile(dir)
	known, err := os.ReadFile(path)
	noted := strings.TrimSpace(string(known))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && noted == epoch:
		return nil
	case err == nil && !strings.HasPrefix(epoch, noted):
		return fmt.Errorf("opening the embedded etcd in %s: its data is of another store; restore a backup of this one, or remove %s to use the other store", dir, path)
	}
	return durable.WriteFile(path, []byte(epoch+"\n"))
}

// vanished is the error of a folder that held a store, of which only the note is
// left. An empty store in its place would take the whole configuration back.
func vanished(dir string) error {
	path := epochFile(dir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("the store is gone: %s says that there was one; restore a backup of the folder, or start once with --new-store to begin "+
		"with an empty configuration and a new certificate authority", path)
}
