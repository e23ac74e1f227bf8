// Package schema knows the kinds of configuration objects and validates, fills
// in and merges objects as a kube-apiserver with the same
// CustomResourceDefinitions does, with the libraries that it uses. It is pure;
// objects are JSON values: map[string]any, []any, string, bool, int64, float64
// and nil.
package schema

import (
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/text"
)

// Kind is a kind of objects.
type Kind struct {
	federation.Kind
	Plural, Singular string
	ShortNames       []string
	Namespaced       bool
	Versions         []string // that are served
	Storage          string   // version in which objects are stored
}

// APIVersion is what stored objects of the kind have.
func (k Kind) APIVersion() string { return strings.TrimPrefix(k.Group+"/"+k.Storage, "/") }

// Set has all kinds. It may be used by many goroutines at once. A kind's schema
// is compiled when it is first used.
type Set struct {
	kinds       []Kind
	ignored     []Kind
	definitions map[federation.Kind]*definition
}

// Check reports what is wrong with an object of a kind that its schema cannot express.
type Check func(of federation.Kind, object map[string]any) []Problem

// Load reads the definitions that are part of the program. Objects have to pass the
// checks, too.
func Load(checks ...Check) (*Set, error) {
	set := &Set{definitions: map[federation.Kind]*definition{}}
	headers, err := readDefinitions()
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		d := newDefinition(h)
		if withoutUse[d.Group] {
			set.ignored = append(set.ignored, d.Kind)
			continue
		}
		d.checks = checks
		set.definitions[d.Kind.Kind] = d
		set.kinds = append(set.kinds, d.Kind)
	}
	slices.SortFunc(set.kinds, func(a, b Kind) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return set, nil
}

// Kinds are all kinds by group and name. They are read-only.
func (s *Set) Kinds() []Kind { return s.kinds }

// Ignored are kinds of other projects that clusters may serve, and of which the hub takes no objects. They are read-only.
func (s *Set) Ignored() []Kind { return s.ignored }

// Kind returns a kind by its group and name.
func (s *Set) Kind(k federation.Kind) (Kind, bool) {
	d, ok := s.definitions[k]
	if !ok {
		return Kind{}, false
	}
	return d.Kind, true
}

// Lookup returns the kind of an object that has this apiVersion and kind. What is
// unknown is named together with the nearest that is known.
func (s *Set) Lookup(apiVersion, kind string) (Kind, *Problem) {
	v, problem := s.version(apiVersion, kind)
	if problem != nil {
		return Kind{}, problem
	}
	return v.definition.Kind, nil
}

func (s *Set) version(apiVersion, kind string) (*version, *Problem) {
	switch {
	case apiVersion == "":
		return nil, &Problem{Required, "apiVersion", "the object names no apiVersion, such as networking.istio.io/v1"}
	case kind == "":
		return nil, &Problem{Required, "kind", "the object names no kind, such as VirtualService"}
	}
	group, name, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, name = "", apiVersion
	}
	d, ok := s.definitions[federation.Kind{Group: group, Name: kind}]
	if !ok {
		return nil, s.unknownKind(group, kind)
	}
	v, ok := d.versions[name]
	if !ok || !v.served {
		return nil, &Problem{UnknownVersion, "apiVersion", fmt.Sprintf(
			"%s of group %s has no version %s: write %s", kind, group, shorten(name), oneOf(qualify(group, d.Versions)))}
	}
	return v, nil
}

func qualify(group string, versions []string) []string {
	list := make([]string, len(versions))
	for i, v := range versions {
		list[i] = group + "/" + v
	}
	return list
}

// unknownKind says which kind may be meant: one of that name in another group, or
// the nearest name, in the same group if there is one.
func (s *Set) unknownKind(group, kind string) *Problem {
	var same, inGroup, all []string
	for _, k := range s.kinds {
		full := k.Name + " of " + k.APIVersion()
		all = append(all, k.Name)
		if k.Name == kind {
			same = append(same, full)
		}
		if k.Group == group {
			inGroup = append(inGroup, k.Name)
		}
	}
	message := fmt.Sprintf("no kind %s is known in group %s", shorten(kind), shorten(quoteEmpty(group)))
	if len(same) > 0 {
		return &Problem{UnknownKind, "apiVersion", message + ": did you mean " + oneOf(same) + "?"}
	}
	near := text.Nearest(kind, inGroup)
	if near == "" {
		near = text.Nearest(kind, all)
	}
	switch {
	case near != "":
		for _, k := range s.kinds {
			if k.Name == near && (k.Group == group || !slices.Contains(inGroup, near)) {
				same = append(same, k.Name+" of "+k.APIVersion())
			}
		}
		message += ": did you mean " + oneOf(same) + "?"
	case len(inGroup) > 0:
		message += ": it has " + strings.Join(inGroup, ", ")
	default:
		message += ": objects of other kinds belong in a Kubernetes cluster, not in the hub"
	}
	return &Problem{UnknownKind, "kind", message}
}

func quoteEmpty(group string) string {
	if group == "" {
		return `""`
	}
	return group
}
