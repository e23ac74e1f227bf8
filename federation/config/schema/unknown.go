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

// maxListed is how many problems an object has at most because of its unknown fields, or because of wrong types; the
// last one says how many are not listed. It is as many as an answer lists: to look for the name that was meant takes time.
const maxListed = 1000

func notListed(more int) Problem {
	return Problem{TooManyProblems, "", fmt.Sprintf("%d more problems are not listed: correct these first", more)}
}

// prune removes the fields that the schema does not know, and names them.
func (c *compiled) prune(object map[string]any) []Problem {
	paths := pruning.PruneWithOptions(object, c.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(paths)
	listed := paths
	if len(paths) > maxListed {
		listed = narrowingFirst(paths)[:maxListed-1]
		slices.Sort(listed)
	}
	problems := make([]Problem, len(listed), len(listed)+1)
	for i, at := range listed {
		problems[i] = unknownField(at, c.siblings(at))
	}
	if more := len(paths) - len(listed); more > 0 {
		problems = append(problems, notListed(more))
	}
	return problems
}

// narrowingFirst has the fields that narrow before the others, so that one of them is listed if there is any: TakeKnown
// refuses an object by what is listed.
func narrowingFirst(paths []string) []string {
	first, others := make([]string, 0, len(paths)), []string(nil)
	for _, at := range paths {
		if narrows(at) {
			first = append(first, at)
		} else {
			others = append(others, at)
		}
	}
	return append(first, others...)
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
