// Package validationtest has objects that break the rules of Istio's kinds, one
// rule each, and objects that break none.
package validationtest

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed testdata/*.txt
var files embed.FS

// Case is an object and what is wrong with it.
type Case struct {
	Name     string // file and line
	Manifest string // YAML
	Refused  []string
	NoEffect []string // fields
}

// Cases reads all cases. A line of a file is a kind and its version, which the
// lines below it have, or WANTED | SPEC or WANTED | SPEC | WANTED. Wanted is
// "valid", or the code and the field of a problem. The last column may also be
// metadata {…}.
func Cases() ([]Case, error) {
	names, err := fs.Glob(files, "testdata/*.txt")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		kind, version := "", ""
		for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			parts := strings.Split(line, " | ")
			if len(parts) == 1 {
				kind, version, _ = strings.Cut(line, " ")
				continue
			}
			c := Case{Name: fmt.Sprintf("%s:%d", name, i+1)}
			metadata := fmt.Sprintf("{name: c%d, namespace: shop}", i+1)
			if own, is := strings.CutPrefix(parts[len(parts)-1], "metadata "); is {
				metadata, parts = own, parts[:len(parts)-1]
			}
			c.Manifest = fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: %s\nspec: %s\n", version, kind, metadata, parts[1])
			c.want(slices.Delete(parts, 1, 2))
			all = append(all, c)
		}
	}
	return all, nil
}

func (c *Case) want(problems []string) {
	for _, text := range problems {
		code, field, _ := strings.Cut(text, " ")
		switch code {
		case "valid":
		case "NO_EFFECT":
			c.NoEffect = append(c.NoEffect, field)
		default:
			c.Refused = append(c.Refused, text)
		}
	}
	slices.Sort(c.Refused)
}
