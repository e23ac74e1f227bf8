package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"isthmus.dev/isthmus/internal/text"
)

// prune removes the fields that the schema does not know, and names them.
func (c *compiled) prune(object map[string]any) []Problem {
	paths := pruning.PruneWithOptions(object, c.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(paths)
	problems := make([]Problem, len(paths))
	for i, at := range paths {
		problems[i] = unknownField(at, c.siblings(at))
	}
	return problems
}

// narrowing are the fields that choose requests, objects, callers or certificates. A part of them that is not
// known cannot be excluded: the object would apply to more than it says.
var narrowing = []string{
	"allowedListeners", "allowedRoutes", "filters", "from", "match", "matches", "parentRefs", "selector", "targetRefs", "tls", "to",
	"validation", "when", "workloadSelector",
}

// narrows reports whether the field at the path is, or is part of, one that chooses what the object applies to.
func narrows(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(step string) bool {
		name, _, _ := strings.Cut(step, "[")
		return slices.Contains(narrowing, name)
	})
}

// unknownField names the nearest of the known fields, or all if they are few.
func unknownField(at string, known []string) Problem {
	name := at[strings.LastIndexByte(at, '.')+1:]
	message := fmt.Sprintf("unknown field %q", shorten(at))
	switch near := text.Nearest(name, known); {
	case near != "":
		message += fmt.Sprintf(": did you mean %q?", near)
	case len(known) > 0 && len(known) <= 16:
		message += ": known are " + strings.Join(known, ", ")
	}
	return Problem{UnknownField, at, message}
}

// siblings are the fields that the schema knows beside that of the path.
func (c *compiled) siblings(at string) []string {
	steps := strings.Split(strings.ReplaceAll(at, "[", ".["), ".")
	s := c.structural
	for _, step := range steps[:len(steps)-1] {
		s = below(s, step)
		if s == nil {
			return nil
		}
	}
	names := namesOf(s.Properties)
	if s == c.structural {
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func below(s *structural.Structural, step string) *structural.Structural {
	if strings.HasPrefix(step, "[") {
		if _, err := strconv.Atoi(strings.Trim(step, "[]")); err == nil {
			return s.Items
		}
	}
	if next, ok := s.Properties[step]; ok {
		return &next
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

func namesOf[V any](properties map[string]V) []string {
	return slices.Sorted(maps.Keys(properties))
}
