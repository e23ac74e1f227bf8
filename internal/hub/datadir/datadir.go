// Package datadir is the folder of all that a hub keeps on its machine.
package datadir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"isthmus.dev/isthmus/internal/durable"
	"isthmus.dev/isthmus/internal/text"
)

// dataFormat is the version of what the data folder holds; a higher one was
// written by a newer hub and is refused.
const dataFormat = 1

// Dir is the folder of all that the hub keeps, locked for this process.
type Dir struct {
	path string
	lock *os.File
}

// Etcd is that of the embedded etcd.
func (d *Dir) Etcd() string { return filepath.Join(d.path, "etcd") }

// SealKey is the file of the keys that seal credentials.
func (d *Dir) SealKey() string { return filepath.Join(d.path, "seal.key") }

// RootCert is the file of the roots that verify the hub's own certificate.
func (d *Dir) RootCert() string { return filepath.Join(d.path, "root-cert.pem") }

// LastKnownGood is the folder of what was last known of clusters.
func (d *Dir) LastKnownGood() string { return filepath.Join(d.path, "last-known-good") }

// Sources is the folder of what a source of configuration gave last.
func (d *Dir) Sources(name string) string { return filepath.Join(d.path, "sources", name) }

// TokenKeys is the folder of the keys that verify tokens.
func (d *Dir) TokenKeys() string { return filepath.Join(d.path, "token-keys") }

// Close unlocks the folder.
func (d *Dir) Close() error { return d.lock.Close() }

// Open makes the folder if it is missing, checks that this user alone can
// use it, and locks it (B-F5, F30).
func Open(path string) (*Dir, error) {
	d, err := prepare(path)
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", path, err)
	}
	return d, nil
}

func prepare(path string) (*Dir, error) {
	if err := makeFolder(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the folder cannot be written: %w; make it writable, or check its disk", text.WithoutPath(err))
	}
	if err := takeLock(lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := checkFormat(filepath.Join(path, "format")); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	d := &Dir{path: path, lock: lock}
	if err := d.removeLeftovers(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func makeFolder(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("the folder cannot be made: %w", text.WithoutPath(err))
		}
		return nil
	case err != nil:
		return text.WithoutPath(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("is a symbolic link; name the folder that it points to")
	case !info.IsDir():
		return errors.New("is not a folder")
	case info.Mode().Perm()&0o022 != 0:
		return errors.New("other users can write to it; remove that permission (chmod 700)")
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return errors.New("belongs to another user")
	}
	return nil
}

// Replica tells this hub from others over one store, over restarts.
func (d *Dir) Replica() (string, error) {
	path := filepath.Join(d.path, "replica")
	known, err := os.ReadFile(path)
	if name := strings.TrimSpace(string(known)); err == nil && len(name) == len(rand.Text()) {
		return name, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--data-dir %s: replica: %w", d.path, text.WithoutPath(err))
	}
	fresh := rand.Text()
	if err := durable.WriteFile(path, []byte(fresh+"\n")); err != nil {
		return "", fmt.Errorf("--data-dir %s: replica: %w", d.path, text.WithoutPath(err))
	}
	return fresh, nil
}

func takeLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder := make([]byte, 20)
		n, _ := f.ReadAt(holder, 0)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(holder[:n]))); err == nil {
			return fmt.Errorf("another isthmus (process %d) uses it; stop it or name another folder", pid)
		}
		return errors.New("another isthmus uses it; stop it or name another folder")
	}
	if err != nil {
		return fmt.Errorf("locking it: %w", err)
	}
	if err := f.Truncate(0); err != nil {
		return text.WithoutPath(err)
	}
	_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func checkFormat(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return durable.WriteFile(path, []byte(strconv.Itoa(dataFormat)+"\n"))
	}
	if err != nil {
		return err
	}
	found, err := strconv.Atoi(strings.TrimSpace(string(data)))
	switch {
	case err != nil || found < 1:
		return fmt.Errorf("%s holds no number; this is not a data folder of isthmus", path)
	case found > dataFormat:
		return fmt.Errorf("its format %d is newer than %d, which this version knows; use a newer isthmus", found, dataFormat)
	}
	return nil
}
