package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/yamlfile"
)

// contextsFile is the config file of the command line: hubs by name.
type contextsFile struct {
	Current  string       `yaml:"current"`
	Contexts []hubContext `yaml:"contexts"`

	path string
}

// hubContext is where a hub is.
type hubContext struct {
	Name      string     `yaml:"name"`
	Server    string     `yaml:"server"`
	Namespace string     `yaml:"namespace"`
	TLS       client.TLS `yaml:"tls"`
}

// maxContexts is the largest config file in bytes.
const maxContexts = 1 << 20

// contextsPath is the file's path and whether the user named it.
func contextsPath() (path string, named bool) {
	if path := os.Getenv("ISTHMUS_CONFIG"); path != "" {
		return path, true
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", false
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "isthmus", "config.yaml"), false
}

// readContexts reads the file; without one, unless it was named, there are no
// contexts.
func readContexts() (contextsFile, error) {
	path, named := contextsPath()
	if path == "" {
		return contextsFile{}, nil
	}
	data, err := readContextsFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return contextsFile{path: path}, nil
	}
	if err != nil {
		return contextsFile{}, fmt.Errorf("reading the contexts: %w; ISTHMUS_CONFIG names another file", err)
	}
	return parseContexts(path, data)
}

func readContextsFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxContexts {
		return nil, fmt.Errorf("%s is not a regular file of at most 1 MiB", path)
	}
	return os.ReadFile(path)
}

// parseContexts refuses unknown and repeated keys and names, with line and column.
func parseContexts(path string, data []byte) (file contextsFile, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading the contexts: %s is not YAML that can be read", path)
		}
	}()
	if err := yamlfile.Read(data, &file); err != nil {
		return contextsFile{}, fmt.Errorf("reading the contexts of %s: %w; correct the file", path, err)
	}
	file.path = path
	dir := filepath.Dir(path)
	seen := map[string]bool{}
	for i := range file.Contexts {
		c := &file.Contexts[i]
		if c.Name == "" || seen[c.Name] {
			return contextsFile{}, fmt.Errorf("reading the contexts of %s: contexts[%d].name: each needs a name of its own, not %q", path, i, c.Name)
		}
		seen[c.Name] = true
		c.TLS = client.TLS{CA: beside(dir, c.TLS.CA), Cert: beside(dir, c.TLS.Cert), Key: beside(dir, c.TLS.Key)}
	}
	return file, nil
}

// beside reads a relative path from the folder of the file that holds it.
func beside(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// choose returns the context of that name, or the current one for "".
func (f contextsFile) choose(name string) (hubContext, error) {
	if name == "" {
		name = f.Current
	}
	if name == "" {
		return hubContext{}, nil
	}
	var names []string
	for _, c := range f.Contexts {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return hubContext{}, cmdutil.Usagef("unknown context %q: %s defines none; add one there", name, f.path)
	}
	return hubContext{}, cmdutil.Usagef("unknown context %q in %s; it defines %s", name, f.path, strings.Join(names, ", "))
}

// withCurrent is the text of a file with another current context; all else,
// comments too, stays.
func withCurrent(text []byte, name string) []byte {
	line := fmt.Sprintf("current: %q\n", name)
	var out strings.Builder
	done := false
	for l := range strings.Lines(string(text)) {
		if !done && strings.HasPrefix(l, "current:") {
			out.WriteString(line)
			done = true
			continue
		}
		out.WriteString(l)
	}
	if !done {
		return []byte(line + out.String())
	}
	return []byte(out.String())
}
