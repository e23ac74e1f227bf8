package apply

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
)

// sources are the flags that name manifests.
type sources struct {
	files     []string
	recursive bool
}

func (s *sources) bind(f *pflag.FlagSet) {
	f.StringArrayVarP(&s.files, "filename", "f", nil, "`FILE`, folder, or - for standard input; may be repeated")
	f.BoolVarP(&s.recursive, "recursive", "R", false, "include subfolders")
}

// read reads every manifest. Of a folder it reads *.yaml, *.yml and *.json, in the
// order of their paths, and only regular files that are in it.
func (s *sources) read(stdin io.Reader) ([]client.ManifestInput, error) {
	if len(s.files) == 0 {
		return nil, cmdutil.Usagef("-f is missing: name a file or a folder of manifests, or - for standard input")
	}
	var all []client.ManifestInput
	size := 0
	add := func(name string, data []byte) error {
		size += len(output.JSON(string(data), ""))
		if size > cmdutil.MaxInput {
			return fmt.Errorf("%s: the manifests have more than %d MiB up to here; apply them in parts", name, cmdutil.MaxInput>>20)
		}
		if !utf8.Valid(data) {
			return fmt.Errorf("%s: the file is not UTF-8 text; convert it", name)
		}
		if slices.ContainsFunc(all, func(m client.ManifestInput) bool { return m.Name == name }) {
			return cmdutil.Usagef("-f: %s is named twice; name it once", name)
		}
		all = append(all, client.ManifestInput{Name: name, Content: string(data)})
		return nil
	}
	for _, name := range s.files {
		if err := s.readOne(name, stdin, add); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func sizeOf(files []client.ManifestInput) int {
	size := 0
	for _, f := range files {
		size += len(f.Content)
	}
	return size
}

func (s *sources) readOne(name string, stdin io.Reader, add func(string, []byte) error) error {
	if name == cmdutil.Stdin {
		if stdin == nil {
			stdin = strings.NewReader("")
		}
		data, err := cmdutil.ReadLimited(stdin)
		if err != nil {
			return fmt.Errorf("reading standard input: %w", err)
		}
		return add(cmdutil.Stdin, data)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("-f: %w; name an existing file or folder", err)
	}
	if info.IsDir() {
		return s.readFolder(name, add)
	}
	data, err := cmdutil.ReadRegular(name, os.Stat, os.Open)
	if err != nil {
		return fmt.Errorf("-f: %w", err)
	}
	return add(name, data)
}

// readFolder reads below a root that nothing leads out of.
func (s *sources) readFolder(dir string, add func(string, []byte) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("-f: %w", err)
	}
	defer func() { _ = root.Close() }() // It was only read.
	names, err := s.namesIn(root)
	if err != nil {
		return fmt.Errorf("-f %s: %w", dir, err)
	}
	if len(names) == 0 {
		return fmt.Errorf("-f %s: the folder has no *.yaml, *.yml or *.json%s; to remove objects, use \"isthmus delete\"", dir, s.deeper())
	}
	for _, name := range names {
		data, err := cmdutil.ReadRegular(name, root.Stat, root.Open)
		if err != nil && isLink(root, name) {
			return fmt.Errorf("-f %s: %s is a symbolic link that leads out of the folder or to nothing; put the file itself there: %w",
				dir, name, err)
		}
		if err != nil {
			return fmt.Errorf("-f %s: %w", dir, err)
		}
		if err := add(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	return nil
}

func isLink(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func (s *sources) deeper() string {
	if s.recursive {
		return ""
	}
	return " (-R includes subfolders)"
}

// namesIn lists the manifests of a folder, sorted. Hidden folders, like those of
// version control and of mounted ConfigMaps, are excluded.
func (s *sources) namesIn(root *os.Root) ([]string, error) {
	var names []string
	err := fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case entry.IsDir() && (!s.recursive || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
			names = append(names, path)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}
