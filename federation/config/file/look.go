package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"isthmus.dev/isthmus/federation/config"
)

// The codes of problems beside those of manifests and schemas.
const (
	codeUnreadable = "UNREADABLE"       // a folder or a file
	codeNotAFile   = "NOT_A_FILE"       // a device, a pipe, a link out of the folder
	codeTwice      = "DUPLICATE_OBJECT" // in several places: refused in all of them
	codeHeld       = "REMOVAL_HELD"     // much is missing at once
	codeInternal   = "INTERNAL"         // a defect of the hub
)

// maxDepth is how deep folders are looked into.
const maxDepth = 16

// swapped is the link by which Kubernetes replaces all files of a mounted
// ConfigMap at once.
const swapped = "..data"

// listedFile is a file as a look found it.
type listedFile struct {
	stamp   string // changes when the file is replaced or written to
	changed time.Time
	refused *config.Problem // why it cannot be read
}

// listing is the folder at one time. It holds the folder open.
type listing struct {
	root    *os.Root
	options Options
	self    string // which folder it is
	files   map[string]listedFile
	unknown []string // folders that cannot be read: nothing is known of what is below
	folders []string // that were read
	links   map[string]string
	bytes   int64
	entries int
}

// list lists all files. An error means that nothing is known about any of them.
func list(o Options) (*listing, error) {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	l := &listing{root: root, options: o, files: map[string]listedFile{}, links: map[string]string{}}
	info, err := root.Stat(".")
	if err == nil {
		l.self = identity(info)
		err = l.walk(".", nil)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *listing) close() { _ = l.root.Close() } // it was only read

// walk looks into a folder, which is in those above. An error concerns the whole
// look.
func (l *listing) walk(folder string, above []string) error {
	entries, self, err := l.list(folder)
	if err != nil {
		if folder == "." {
			return err
		}
		l.unknown = append(l.unknown, folder)
		l.refuse(folder, codeUnreadable, "the folder cannot be read, and what was read below it stays: check its owner and mode")
		return nil
	}
	if slices.Contains(above, self) || len(above) >= maxDepth {
		l.refuse(folder, codeNotAFile, fmt.Sprintf("the folder leads back to itself or lies more than %d deep: it is not looked into", maxDepth))
		return nil
	}
	l.folders = append(l.folders, folder)
	l.entries += len(entries)
	if l.entries > l.options.Files {
		return fmt.Errorf("it holds more than %d files and folders", l.options.Files)
	}
	above = append(slices.Clone(above), self)
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		if e.Name() == swapped {
			l.links[folder] = l.target(folder)
		}
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := l.see(name, e, above); err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) list(folder string) ([]os.DirEntry, string, error) {
	f, err := l.root.OpenFile(folder, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	entries, err := f.ReadDir(l.options.Files + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, identity(info), err
}

// see notes an entry that is not hidden. Links are followed inside the folder.
func (l *listing) see(name string, e os.DirEntry, above []string) error {
	manifest := isManifest(name)
	if e.Type()&fs.ModeSymlink == 0 && !e.IsDir() && !manifest {
		return nil
	}
	info, err := l.root.Stat(name)
	switch {
	case err != nil && e.Type()&fs.ModeSymlink != 0:
		l.unknown = append(l.unknown, name)
		l.refuse(name, codeNotAFile, "is a symbolic link to nothing or out of the folder: put the file itself there")
	case errors.Is(err, fs.ErrNotExist): // it went away just now
	case err != nil:
		l.refuse(name, codeUnreadable, "cannot be looked at: check its owner and mode")
	case info.IsDir():
		return l.walk(name, above)
	case !manifest:
	case !info.Mode().IsRegular():
		l.refuse(name, codeNotAFile, "is not a regular file: it is not opened")
	default: // of a file that is too large no more than that is read
		l.files[name] = listedFile{stamp: stamp(info), changed: info.ModTime()}
		l.bytes += min(info.Size(), int64(l.options.Manifest.Bytes)+1)
		if l.bytes > l.options.Bytes {
			return fmt.Errorf("its files have more than %d bytes together", l.options.Bytes)
		}
	}
	return nil
}

func (l *listing) refuse(name, code, message string) {
	l.files[name] = listedFile{stamp: code + " " + message, refused: &config.Problem{Code: code, Object: name, Message: message}}
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

func (l *listing) target(folder string) string {
	target, err := l.root.Readlink(path.Join(folder, swapped))
	if err != nil {
		return "" // there is none
	}
	return target
}

// unmoved reports whether no files were replaced at once since the look began.
func (l *listing) unmoved() bool {
	for folder, target := range l.links {
		if l.target(folder) != target {
			return false
		}
	}
	return true
}

// isUnknown reports whether the look could not tell whether the file is there.
func (l *listing) isUnknown(name string) bool {
	return slices.ContainsFunc(l.unknown, func(folder string) bool { return strings.HasPrefix(name, folder+"/") })
}

// content reads a file that was seen; whole says that it is the one that was
// seen and that it was not written to meanwhile.
func (l *listing) content(name string) (data []byte, whole bool, refused *config.Problem) {
	no := func(code, message string) ([]byte, bool, *config.Problem) {
		return nil, true, &config.Problem{Code: code, Object: name, Message: message}
	}
	f, err := l.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	} else if err != nil {
		return no(codeUnreadable, "cannot be opened: check its owner and mode")
	}
	defer f.Close()
	seen := l.files[name].stamp
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || stamp(info) != seen {
		return nil, false, nil
	}
	data, err = io.ReadAll(io.LimitReader(f, int64(l.options.Manifest.Bytes)+1))
	if err != nil {
		return no(codeUnreadable, "cannot be read")
	}
	info, err := f.Stat()
	return data, err == nil && stamp(info) == seen, nil
}

// paths are the folders that were read.
func (l *listing) paths() []string {
	paths := make([]string, len(l.folders))
	for i, folder := range l.folders {
		paths[i] = filepath.Join(l.options.Dir, folder)
	}
	return paths
}

// identity tells folders and files apart.
func identity(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(s.Dev, " ", s.Ino)
	}
	return info.Name()
}

func stamp(info fs.FileInfo) string {
	return fmt.Sprint(identity(info), " ", info.Size(), " ", info.ModTime().UnixNano())
}

func unreadable(dir string, err error) config.Problem {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return config.Problem{
		Code:    codeUnreadable,
		Message: fmt.Sprintf("the folder %s cannot be read, and what was read of it before stays: %v", dir, err),
	}
}
