package seal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"isthmus.dev/isthmus/internal/keyfile"
	"isthmus.dev/isthmus/internal/text"
)

// maxKeyFile is the largest key file in bytes.
const maxKeyFile = 256 << 10

// readKeyFile refuses a file that others than its owner and its group can read,
// or that others than its owner can change.
func readKeyFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, text.WithoutPath(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, text.WithoutPath(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxKeyFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxKeyFile)
	}
	if err := keyfile.Check(info); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	return content, text.WithoutPath(err)
}

// makeKeyFile makes a file with one key. Of several that make it at once, all
// get the key of the first.
func makeKeyFile(path string) ([]byte, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	content, err := writeRing(handle)
	if err != nil {
		return nil, err
	}
	written, err := writeBeside(path, content)
	if err != nil {
		return nil, err
	}
	err = os.Link(written, path)
	if errors.Is(err, os.ErrExist) {
		if err := os.Remove(written); err != nil {
			return nil, text.WithoutPath(err)
		}
		return readKeyFile(path)
	}
	return content, errors.Join(text.WithoutPath(err), text.WithoutPath(os.Remove(written)), syncFolder(filepath.Dir(path)))
}

// replaceKeyFile makes the file hold the text: after a crash it has the old one
// or the new one.
func replaceKeyFile(path string, content []byte) error {
	written, err := writeBeside(path, content)
	if err != nil {
		return err
	}
	if err := os.Rename(written, path); err != nil {
		return errors.Join(text.WithoutPath(err), text.WithoutPath(os.Remove(written)))
	}
	return syncFolder(filepath.Dir(path))
}

// newPrefix begins the names of files that are to become key files.
const newPrefix = ".new-"

// leftoverAfter is when such a file is a leftover of a crash: other hubs may share
// the folder, and be writing there.
const leftoverAfter = 10 * time.Minute

// removeLeftovers removes what a crash left in the folder of the key file: it holds
// keys. Files of others are not touched.
func removeLeftovers(path string, now time.Time) error {
	dir := filepath.Dir(path)
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil // the reader of the key file reports what is wrong
	}
	if err != nil {
		return text.WithoutPath(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(f.Name(), newPrefix) || now.Sub(info.ModTime()) < leftoverAfter {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s beside it may hold keys and cannot be removed: remove it: %w", f.Name(), text.WithoutPath(err))
		}
	}
	return nil
}

// writeBeside writes a new file in the folder of the path and returns its name.
func writeBeside(path string, content []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix+"*") // mode 0600
	if err != nil {
		return "", text.WithoutPath(err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(text.WithoutPath(err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return text.WithoutPath(err)
	}
	return errors.Join(d.Sync(), d.Close())
}
