package file_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/file"
	"isthmus.dev/isthmus/federation/config/schema"
)

// anything admits what the suite makes up.
type anything struct{}

func (anything) Lookup(apiVersion, kind string) (schema.Kind, *schema.Problem) {
	group, version, _ := strings.Cut(apiVersion, "/")
	return schema.Kind{Kind: federation.Kind{Group: group, Name: kind}, Namespaced: true, Storage: version}, nil
}

func (anything) Admit(wanted map[string]any) (schema.Admitted, []schema.Problem) {
	return schema.Admitted{Object: wanted}, nil
}

// mounted is a ConfigMap: its objects are in several files, which are replaced
// at once.
type mounted struct {
	*file.Source
	t        *testing.T
	dir      string
	revision atomic.Int64
	version  string
	objects  map[string]map[string][]byte // by file and name
}

// Run is part of config.Source.
func (m *mounted) Run(ctx context.Context, to config.Sink) error {
	return m.Source.Run(ctx, configtest.Noting(to, &m.revision))
}

// Commit is part of configtest.Written.
func (m *mounted) Commit(_ context.Context, c config.Commit) (int64, error) {
	revision := m.revision.Load() + 1
	for _, change := range c.Changes {
		name := change.Key.Name[:1] + ".yaml"
		if m.objects[name] == nil {
			m.objects[name] = map[string][]byte{}
		}
		delete(m.objects[name], change.Key.Name)
		if change.Object != nil {
			m.objects[name][change.Key.Name] = change.Object.Manifest
		}
		if len(m.objects[name]) == 0 {
			delete(m.objects, name)
		}
	}
	files := map[string]string{}
	for name, objects := range m.objects {
		var all bytes.Buffer
		for manifest := range maps.Values(objects) {
			all.Write(manifest)
			all.WriteString("\n---\n")
		}
		files[name] = all.String()
	}
	m.version += "x"
	swap(m.t, m.dir, ".."+m.version, files)
	return revision, nil
}

func TestConformance(t *testing.T) {
	configtest.RunSource(t, func(t *testing.T) configtest.Written {
		o := options(t, filepath.Join(t.TempDir(), "mounted"))
		must(t, os.Mkdir(o.Dir, 0o700))
		o.Debounce = 500 * time.Millisecond // a swap takes several steps, between which the machine may stop
		o.Schema, o.Kinds = anything{}, []federation.Kind{configtest.Key("a").Of()}
		return &mounted{Source: file.New(o), t: t, dir: o.Dir, objects: map[string]map[string][]byte{}}
	})
}
