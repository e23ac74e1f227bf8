package transport

import "github.com/vektah/gqlparser/v2/ast"

// many is more than every limit; counts stop there instead of overflowing.
const many = 1 << 30

// shape measures a selection set with its fragments resolved.
type shape struct {
	depth         int // Levels of fields, what is below __schema and __type apart.
	full          int // Levels of fields, everything counted.
	introspection int // Levels of fields below __schema and __type.
	fields        int // Fields at all levels.
	roots         int // Fields at the first level.
}

func (s shape) join(other shape) shape {
	return shape{
		depth: max(s.depth, other.depth), full: max(s.full, other.full), introspection: max(s.introspection, other.introspection),
		fields: min(s.fields+other.fields, many), roots: min(s.roots+other.roots, many),
	}
}

// shapes measures each fragment once, however often it is spread.
type shapes struct {
	fragments ast.FragmentDefinitionList
	known     map[string]shape
	open      []string
	cycle     string // A fragment that contains itself, or "".
}

// whole joins the shapes of all operations and unused fragments.
func (s *shapes) whole(document *ast.QueryDocument) shape {
	var whole shape
	for _, operation := range document.Operations {
		found := s.set(operation.SelectionSet)
		roots := max(whole.roots, found.roots)
		whole = whole.join(found)
		whole.roots = roots
	}
	for _, fragment := range document.Fragments {
		s.fragment(fragment.Name)
	}
	return whole
}

func (s *shapes) set(set ast.SelectionSet) shape {
	var sum shape
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			sum = sum.join(s.field(selected))
		case *ast.InlineFragment:
			sum = sum.join(s.set(selected.SelectionSet))
		case *ast.FragmentSpread:
			sum = sum.join(s.fragment(selected.Name))
		}
	}
	return sum
}

func (s *shapes) field(field *ast.Field) shape {
	below := s.set(field.SelectionSet)
	found := shape{
		depth: below.depth + 1, full: below.full + 1, introspection: below.introspection,
		fields: min(below.fields+1, many), roots: 1,
	}
	if field.Name == "__schema" || field.Name == "__type" {
		found.depth, found.introspection = 1, below.full
	}
	return found
}

func (s *shapes) fragment(name string) shape {
	if found, ok := s.known[name]; ok {
		return found
	}
	definition := s.fragments.ForName(name)
	if definition == nil {
		return shape{} // Validation refuses it by name.
	}
	for _, open := range s.open {
		if open == name {
			s.cycle = name
			return shape{}
		}
	}
	s.open = append(s.open, name)
	found := s.set(definition.SelectionSet)
	s.open = s.open[:len(s.open)-1]
	s.known[name] = found
	return found
}
