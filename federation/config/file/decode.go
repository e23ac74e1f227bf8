package file

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/parallel"
)

// shownProblems is how many problems of one file are reported.
const shownProblems = 20

// decode reads the objects of a file. With a problem nothing of it counts (B-Y3).
func decode(o Options, name string, data []byte) (objects []*config.Object, problems []config.Problem) {
	defer func() {
		if p := recover(); p != nil {
			objects, problems = nil, []config.Problem{{
				Code: codeInternal, Object: name,
				Message: fmt.Sprintf("the hub cannot read this file, which is a fault of the hub: %.200v", p),
			}}
		}
	}()
	documents, refused := manifest.Parse(name, data, o.Manifest)
	for _, p := range refused {
		if p.Code == manifest.Empty { // objects of a folder cannot be deleted by name
			p.Message = "the file has no object; to remove the objects that it had, delete the file"
		}
		problems = append(problems, problemAt(string(p.Code), name, p.Field, p.Line, p.Column, p.Message))
	}
	objects = make([]*config.Object, len(documents))
	found := make([][]config.Problem, len(documents))
	parallel.Each(len(documents), func(i int) { objects[i], found[i] = admit(o.Schema, name, documents[i]) })
	for _, more := range found {
		problems = append(problems, more...)
	}
	if more := len(problems) - shownProblems; more > 0 {
		problems = append(problems[:shownProblems], config.Problem{
			Code: string(manifest.TooManyProblems), Object: name,
			Message: fmt.Sprintf("the file has %d more problems", more),
		})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return objects, nil
}

func problemAt(code, name, field string, line, column int, message string) config.Problem {
	if line > 0 {
		message = fmt.Sprintf("line %d, column %d: %s", line, column, message)
	}
	return config.Problem{Code: code, Object: name, Field: field, Message: message}
}

// admit validates a document and fills in its defaults.
func admit(s Schema, name string, d manifest.Document) (*config.Object, []config.Problem) {
	apiVersion, _ := d.Value["apiVersion"].(string)
	kindName, _ := d.Value["kind"].(string)
	kind, unknown := s.Lookup(apiVersion, kindName)
	if unknown != nil {
		return nil, refusals(name, d, []schema.Problem{*unknown})
	}
	key := identify(kind, d.Value)
	admitted, refused := s.Admit(d.Value)
	if len(refused) > 0 {
		return nil, refusals(name, d, refused)
	}
	admitted.Object["metadata"].(map[string]any)["uid"] = config.UIDOf("file", key)
	object, err := config.NewObject(key, kind.APIVersion(), admitted)
	if err != nil {
		return nil, refusals(name, d, []schema.Problem{{Code: schema.Invalid, Message: err.Error()}})
	}
	return object, nil
}

// identify returns the key of a manifest. One of a namespaced kind that names no
// namespace belongs to the default one.
func identify(kind schema.Kind, value map[string]any) federation.ObjectKey {
	m, _ := value["metadata"].(map[string]any)
	if namespace, _ := m["namespace"].(string); kind.Namespaced && namespace == "" && m != nil {
		m["namespace"] = "default"
	}
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	return federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: namespace, Name: name}
}

func refusals(name string, d manifest.Document, all []schema.Problem) []config.Problem {
	problems := make([]config.Problem, len(all))
	for i, p := range all {
		line, column := d.Position(p.Field)
		problems[i] = problemAt(string(p.Code), name, p.Field, line, column, p.Message)
	}
	return problems
}
