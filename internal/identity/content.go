package identity

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"

	"isthmus.dev/isthmus/internal/keyfile"
)

// maxPart bounds one file, in bytes.
const maxPart = 1 << 20

// content is what one look found in a folder.
type content struct {
	parts parts
	err   error // a part cannot be read, or must not be used
}

func (c content) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.parts)) {
		_, _ = fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(c.parts[name]))
	}
	_, _ = fmt.Fprint(h, c.err)
	return [sha256.Size]byte(h.Sum(nil))
}

// read reads the parts of a folder. Links lead to files below the root only.
func (f *Folder) read(name string) content {
	found := content{parts: parts{}}
	for _, part := range partNames {
		data, err := f.readPart(name+"/"+part, slices.Contains(keyNames, part))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return content{err: fmt.Errorf("%s %w", part, err)}
		default:
			found.parts[part] = data
		}
	}
	return found
}

// readPart never waits for a pipe and never follows a link out of the root. The
// error is without paths.
func (f *Folder) readPart(path string, key bool) ([]byte, error) {
	file, err := f.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, errors.New("cannot be opened, or is a link out of the folder of secrets")
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, errors.New("cannot be read")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	if err := keyfile.Check(info); err != nil && key {
		return nil, fmt.Errorf("may not be used: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPart+1))
	switch {
	case err != nil:
		return nil, errors.New("cannot be read")
	case len(data) > maxPart:
		return nil, fmt.Errorf("has more than %d bytes", maxPart)
	}
	return data, nil
}
