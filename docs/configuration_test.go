package docs

import (
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	helpLine    = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)\b(.*)$`)
	helpDefault = regexp.MustCompile(`\(default (\d[^)]*)\)`)
	usedFlag    = regexp.MustCompile(`(?:^|\s)--([a-z-]+)`)
)

// serveFlags are the flags of serve with their lines of the help.
func serveFlags(t *testing.T) map[string]string {
	t.Helper()
	help, code := isthmus(t, "serve", "--help")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, help)
	}
	flags := map[string]string{}
	for _, m := range helpLine.FindAllStringSubmatch(help, -1) {
		flags[m[1]] = m[2]
	}
	delete(flags, "help")
	return flags
}

func TestEveryFlagIsDocumented(t *testing.T) {
	flags := serveFlags(t)
	var documented []string
	for _, row := range rows(t, read(t, "configuration.md"), "flag") {
		name := strings.TrimPrefix(strings.Fields(spans(row[0])[0])[0], "--")
		documented = append(documented, name)
		if m := helpDefault.FindStringSubmatch(flags[name]); m != nil && !slices.Contains(spans(row[1]), m[1]) {
			t.Errorf("--%s: the default is %s, the guide says %s", name, m[1], row[1])
		}
	}
	sameSet(t, "flags", documented, keysOf(flags))
}

// TestCommandLinesUseKnownFlags looks at every command line of the hub.
func TestCommandLinesUseKnownFlags(t *testing.T) {
	flags, seen := serveFlags(t), 0
	for _, page := range guide(t) {
		for _, text := range blocksOf(read(t, page), "sh") {
			for command := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
				if !strings.Contains(command, "isthmus serve") {
					continue
				}
				for _, m := range usedFlag.FindAllStringSubmatch(command, -1) {
					seen++
					if flags[m[1]] == "" && m[1] != "help" {
						t.Errorf("%s: there is no flag --%s", page, m[1])
					}
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d flags were seen", seen)
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	sameSet(t, "keys", firstColumn(rows(t, read(t, "configuration.md"), "key")), configKeys(t))
}

// configKeys are the paths of all values that the config file can have.
func configKeys(t *testing.T) []string {
	t.Helper()
	types := map[string]*ast.StructType{}
	dirs := []string{
		"../internal/hub/settings", "../internal/hub/identities", "../internal/hub/kinds", "../internal/hub/logs", "../internal/keyfile",
		"../federation/config/mcp",
	}
	registries, err := os.ReadDir("../registries")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range registries { // each may have a section
		if room.IsDir() {
			dirs = append(dirs, "../registries/"+room.Name())
		}
	}
	for _, dir := range dirs {
		walk(t, dir, func(n ast.Node) {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					types[filepath.Base(dir)+"."+spec.Name.Name] = s
				}
			}
		})
	}
	var keys []string
	var add func(prefix, name string)
	add = func(prefix, name string) {
		room, _, _ := strings.Cut(name, ".")
		for _, field := range types[name].Fields.List {
			raw, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			key := prefix + reflect.StructTag(raw).Get("yaml")
			typ := field.Type
			if list, ok := typ.(*ast.ArrayType); ok {
				if types[typeName(list.Elt, room)] != nil {
					typ, key = list.Elt, key+"[]"
				}
			}
			if pointer, ok := typ.(*ast.StarExpr); ok {
				typ = pointer.X
			}
			if name := typeName(typ, room); types[name] != nil {
				add(key+".", name)
				continue
			}
			keys = append(keys, key)
		}
	}
	add("", "settings.configFile")
	slices.Sort(keys)
	return keys
}

// typeName is the name of a type with that of its package, which is the room unless the
// name says another one.
func typeName(e ast.Expr, room string) string {
	switch e := e.(type) {
	case *ast.Ident:
		return room + "." + e.Name
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return of.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// TestConfigFilesLoad gives every config file of the guide to the hub, with a
// flag that stops it right after the file was read.
func TestConfigFilesLoad(t *testing.T) {
	loaded := 0
	for _, page := range guide(t) {
		for _, text := range blocksOf(read(t, page), "yaml") {
			var top map[string]any
			if err := yaml.UnmarshalStrict([]byte(text), &top); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, text)
				continue
			}
			if top["scrape_configs"] != nil || top["groups"] != nil {
				continue // Prometheus'
			}
			if top["contexts"] != nil || top["apiVersion"] != nil || top["stats_config"] != nil {
				continue // the command line's, manifests, and Envoy's bootstrap
			}
			file := write(t, filepath.Join(t.TempDir(), "isthmus.yaml"), []byte(text))
			printed, code := isthmus(t, "serve", "--dev", "--tls-cert", "x", "--config", file)
			loaded++
			if code != 2 || !strings.Contains(printed, "--dev uses plaintext") {
				t.Errorf("%s: exit %d: %s", page, code, printed)
			}
		}
	}
	if loaded < 4 {
		t.Errorf("only %d files were loaded", loaded)
	}
}

// TestStartErrorsAreAsDocumented provokes what the guide lists.
func TestStartErrorsAreAsDocumented(t *testing.T) {
	documented := map[string]string{}
	for _, row := range rows(t, section(t, read(t, "configuration.md"), "## Exit codes"), "message") {
		documented[spans(row[0])[0]] = row[1]
	}
	const provider = "clusters: [{id: a, provider: Mock}, {id: b, provider: Mock}, {id: c, provider: Consul}]\n"
	for _, c := range []struct {
		config string
		args   []string
		want   string
	}{
		{args: nil, want: "mutual TLS needs"},
		{args: []string{"--dev", "--tls-cert", "x"}, want: "--dev uses plaintext"},
		{args: []string{"--nope"}, want: "unknown flag"},
		{args: []string{"--dev", "--etcd-endpoints", "http://10.0.0.1:2379"}, want: "is plaintext to another machine"},
		{args: []string{"--dev", "--data-dir", "d", "--xds-addr", "0.0.0.0:15010"}, want: "plaintext is accepted only"},
		{args: []string{"--config", "isthmus.yaml"}, config: "graphql: {adr: x}\n", want: "unknown key"},
		{args: []string{"--config", "isthmus.yaml"}, config: "clusters: [{id: a, provider: Foo}]\n", want: "is not known"},
		{args: []string{"--config", "isthmus.yaml"}, config: provider, want: "is missing"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "isthmus.yaml"), []byte(c.config))
		cmd := exec.Command(binary.Path(t), append([]string{"serve"}, c.args...)...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		printed := strings.TrimPrefix(strings.TrimSpace(string(out)), "isthmus: ")
		found := false
		for message, code := range documented {
			head, _, shortened := strings.Cut(message, "…")
			if strings.HasPrefix(printed, head) && (shortened || printed == message) {
				found = true
				if code != strconv.Itoa(cmd.ProcessState.ExitCode()) {
					t.Errorf("%v: exit %d, the guide says %s", c.args, cmd.ProcessState.ExitCode(), code)
				}
			}
		}
		if !found || !strings.Contains(printed, c.want) {
			t.Errorf("%v: the guide has no row for %q", c.args, printed)
		}
	}
}
