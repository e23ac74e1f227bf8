package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/filewatch"
)

// FolderOptions are rarely set. Zero values have the defaults named here.
type FolderOptions struct {
	Poll     time.Duration // look at least this often, whatever the file system says; default 2 s
	Debounce time.Duration // how long what cannot be used may be half-written; default 200 ms
	Logger   *slog.Logger  // default: slog.Default()
}

// Folder keeps secrets of files: NAMESPACE/NAME/tls.crt and tls.key, and ca.crt
// there or in NAMESPACE/NAME-cacert, as Kubernetes mounts them. As a Secret of
// Kubernetes, each is for the gateways of its own namespace and for no others,
// whatever Gateways select them (R04).
type Folder struct {
	root    *os.Root
	dir     string
	options FolderOptions
	cache   *secretCache
	looks   filewatch.Looks // at NAMESPACE/NAME
	flat    map[string]bool // folders that hold a secret where that of a namespace is expected
}

// OpenFolder reads the folder once into the secrets. It fails where that is not a
// folder; what is wrong with a secret is a problem.
func OpenFolder(dir string, to *Secrets, o FolderOptions) (*Folder, error) {
	if o.Poll <= 0 {
		o.Poll = 2 * time.Second
	}
	if o.Debounce <= 0 {
		o.Debounce = 200 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of secrets: %w", err)
	}
	f := &Folder{root: root, dir: dir, options: o, cache: to.cache, flat: map[string]bool{}}
	f.reload()
	f.reload() // what is there at the start is whole
	return f, nil
}

// Close lets go of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Run follows the folder until the context ends and then returns nil.
func (f *Folder) Run(ctx context.Context) error {
	folders := filewatch.Open(filewatch.Options{Dir: f.dir, Debounce: f.options.Debounce, Poll: f.options.Poll, Logger: f.options.Logger})
	defer folders.Close()
	for again := true; ctx.Err() == nil; again = f.reload() {
		folders.Follow(f.folders()...)
		folders.Wait(ctx, again)
	}
	return nil
}

// folders are the folder and the two levels below that hold secrets.
func (f *Folder) folders() []string {
	paths := []string{f.dir}
	for name := range f.looks.Names() {
		namespace, _, _ := strings.Cut(name, "/")
		for _, path := range []string{filepath.Join(f.dir, namespace), filepath.Join(f.dir, namespace, name[len(namespace):])} {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// reload reads the folder. What can be used counts at once; what
// cannot, and what is gone, when two looks in a row find the same. again: a
// further look soon will tell more.
func (f *Folder) reload() (again bool) {
	names, err := f.names()
	if err != nil {
		f.cache.complain("folder", &federation.Problem{
			Code: ProblemSource, Object: "folder of secrets",
			Message: "it cannot be read; what was read before stays in use",
		})
		return false
	}
	f.cache.complain("folder", nil)
	for _, name := range names {
		found := f.read(name)
		again = f.take(name, found, f.looks.Saw(name, found.sum())) || again
	}
	missing, gone := f.looks.End()
	for _, name := range gone {
		f.drop(name)
	}
	return again || len(missing) > 0
}

// names are the secrets in the folder, as NAMESPACE/NAME.
func (f *Folder) names() ([]string, error) {
	namespaces, err := f.foldersIn(".")
	if err != nil {
		return nil, err
	}
	for name := range f.flat {
		if !slices.Contains(namespaces, name) {
			f.checkLayout(name) // gone since
			delete(f.flat, name)
		}
	}
	var names []string
	for _, namespace := range namespaces {
		f.checkLayout(namespace)
		found, err := f.foldersIn(namespace)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			names = append(names, namespace+"/"+name)
		}
	}
	return names, nil
}

// foldersIn are the names of the folders in one, sorted.
func (f *Folder) foldersIn(path string) ([]string, error) {
	dir, err := f.root.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		info, err := f.root.Stat(path + "/" + e.Name()) // a link may lead to a folder; out of the root it leads nowhere
		if err == nil && info.IsDir() && isName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// checkLayout reports a secret that lies where the folder of its namespace is
// expected: it says for nobody which gateways may have it, and none get it.
func (f *Folder) checkLayout(name string) {
	flat := slices.ContainsFunc(partNames, func(part string) bool {
		_, err := f.root.Lstat(name + "/" + part)
		return err == nil
	})
	if flat == f.flat[name] {
		return
	}
	var problem *federation.Problem
	if flat {
		problem = &federation.Problem{
			Code: ProblemUnusable, Object: "secret " + name,
			Message: fmt.Sprintf("it is in no namespace, and no gateway gets it; move it to NAMESPACE/%s, where NAMESPACE is that of the gateways that may have it", name),
		}
	}
	f.flat[name] = flat
	f.cache.complain("folder "+name, problem)
}

// isName reports whether the name may be that of a secret.
func isName(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	})
}

// take gives the cache what a folder holds; again: it may be half-written.
func (f *Folder) take(name string, found content, same bool) (again bool) {
	if found.err != nil {
		if same {
			f.refuse(name, found.err)
		}
		return !same
	}
	for _, ref := range refsOf(name) {
		wanted := found.parts.has(ref.Authorities) || len(found.parts) == 0 && !ref.Authorities
		_, err := found.parts.read(ref.Authorities, f.cache.now())
		switch {
		case wanted && err != nil && !same, !wanted && !same:
			again = true
		case wanted:
			f.cache.set(ref, found.parts)
		default:
			f.cache.set(ref, nil)
		}
	}
	return again
}

// refuse says what is wrong with a folder as a whole.
func (f *Folder) refuse(name string, err error) {
	ref := refsOf(name)[0]
	_, stays := f.cache.secret(ref)
	f.cache.complain(ref.place(), unusable(ref, err, stays))
}

func (f *Folder) drop(name string) {
	for _, ref := range refsOf(name) {
		f.cache.set(ref, nil)
	}
}

// refsOf are what NAMESPACE/NAME may hold.
func refsOf(path string) []Ref {
	namespace, name, _ := strings.Cut(path, "/")
	if strings.HasSuffix(name, authoritySuffix) {
		return []Ref{{Namespace: namespace, Name: name, Authorities: true}}
	}
	return []Ref{{Namespace: namespace, Name: name}, {Namespace: namespace, Name: name, Authorities: true}}
}
