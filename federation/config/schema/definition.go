package schema

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
)

//go:generate go test -run Copies -update .

// definitions are the CustomResourceDefinitions of other projects, packed, and of the
// project's own kinds, as they are applied to clusters.
//
//go:embed crds
var definitions embed.FS

// header is what is read of a CustomResourceDefinition at the start; schemas stay
// as they are until they are used.
type header struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind       string   `json:"kind"`
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			ShortNames []string `json:"shortNames"`
		} `json:"names"`
		Versions []versionHeader `json:"versions"`
	} `json:"spec"`
}

type versionHeader struct {
	Name    string          `json:"name"`
	Served  bool            `json:"served"`
	Storage bool            `json:"storage"`
	Schema  json.RawMessage `json:"schema"`

	Subresources struct {
		Status *struct{} `json:"status"`
	} `json:"subresources"`
}

// withoutUse are groups of which the hub takes no objects; Ignored has their kinds.
var withoutUse = map[string]bool{"extensions.istio.io": true}

func readDefinitions() ([]header, error) {
	var all []header
	for _, name := range []string{"istio", "gateway-api", "mcs-api"} {
		data, err := copyOf(name)
		if err != nil {
			return nil, err
		}
		var list []header
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("reading the definitions of %s: %w", name, err)
		}
		all = append(all, list...)
	}
	own, err := ownDefinitions()
	return append(all, own...), err
}

func copyOf(name string) ([]byte, error) {
	packed, err := definitions.ReadFile("crds/" + name + ".json.gz")
	if err != nil {
		return nil, fmt.Errorf("reading the definitions of %s: %w", name, err)
	}
	unpack, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the definitions of %s: %w", name, err)
	}
	return io.ReadAll(unpack)
}

func ownDefinitions() ([]header, error) {
	files, err := fs.Glob(definitions, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the own definitions: %w", err)
	}
	list := make([]header, len(files))
	for i, file := range files {
		data, err := definitions.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", file, err)
		}
		if err := yaml.Unmarshal(data, &list[i]); err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", file, err)
		}
	}
	return list, nil
}

// definition is a kind with its versions.
type definition struct {
	Kind
	versions map[string]*version
	typed    func() (*typer, error)
	checks   []Check
}

func (d *definition) check(object map[string]any) []Problem {
	var found []Problem
	for _, check := range d.checks {
		found = append(found, check(d.Kind.Kind, object)...)
	}
	for i := range found {
		found[i].Message = cut(found[i].Message)
	}
	return found
}

func newDefinition(h header) *definition {
	d := &definition{
		Kind: Kind{
			Kind:   federation.Kind{Group: h.Spec.Group, Name: h.Spec.Names.Kind},
			Plural: h.Spec.Names.Plural, Singular: h.Spec.Names.Singular, ShortNames: h.Spec.Names.ShortNames,
			Namespaced: h.Spec.Scope == "Namespaced",
		},
		versions: map[string]*version{},
	}
	for _, v := range h.Spec.Versions {
		if v.Served {
			d.Versions = append(d.Versions, v.Name)
		}
		if v.Storage {
			d.Storage = v.Name
		}
		d.versions[v.Name] = newVersion(d, v)
	}
	d.typed = sync.OnceValues(d.compileTypes)
	return d
}
