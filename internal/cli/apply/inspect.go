package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/validation"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
)

// manifestObject is an object of the manifests and where it stands.
type manifestObject struct {
	ref      client.Ref
	document manifest.Document
}

// documentsOf reads manifests, each object once, and says what cannot be read.
func documentsOf(files []client.ManifestInput) (found []manifestObject, problems []output.Problem) {
	first := map[client.Ref]manifest.Document{}
	for _, f := range files {
		documents, wrong := manifest.Parse(f.Name, []byte(f.Content), manifest.Limits{})
		for _, w := range wrong {
			problems = append(problems, output.Problem{
				File: w.File, Line: w.Line, Column: w.Column, Field: w.Field,
				Code: string(w.Code), Message: w.Message,
			})
		}
		for _, d := range documents {
			object := manifestObject{ref: refOf(d), document: d}
			other, twice := first[object.ref]
			if twice && object.ref.Name != "" {
				problems = append(problems, object.problem("", "DUPLICATE_OBJECT",
					fmt.Sprintf("the object is defined at %s:%d, too; remove one", other.File, other.Line)))
				continue
			}
			first[object.ref] = d
			found = append(found, object)
		}
	}
	return found, problems
}

// manifestReport is what can be checked in manifests without a hub.
type manifestReport struct {
	objects  []manifestObject
	problems []output.Problem // why a hub would refuse them
	findings []output.Problem // what is valid and has no effect
}

// inspect reads manifests and validates each object as a new one. The error is a
// defect of the program.
func inspect(files []client.ManifestInput) (manifestReport, error) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		return manifestReport{}, err
	}
	var seen manifestReport
	seen.objects, seen.problems = documentsOf(files)
	for _, object := range seen.objects {
		admitted, problems := set.Admit(object.document.Value, nil)
		if len(problems) == 0 {
			problems = kind.Check(object.key(), admitted)
		}
		for _, p := range problems {
			told := object.problem(p.Field, string(p.Code), p.Message)
			if p.Code == validation.NoEffect {
				seen.findings = append(seen.findings, told)
				continue
			}
			seen.problems = append(seen.problems, told)
		}
	}
	slices.SortStableFunc(seen.problems, func(a, b output.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return seen, nil
}

// tellFindings tells what has no effect on standard error.
func (i manifestReport) tellFindings(io cmdutil.Streams) error {
	for _, p := range i.findings {
		if _, err := fmt.Fprintln(io.Err, "warning:", p); err != nil {
			return err
		}
	}
	return nil
}

// key is the object's name as a hub has it.
func (o manifestObject) key() federation.ObjectKey {
	return federation.ObjectKey{Group: o.ref.Group, Kind: o.ref.Kind, Namespace: cmp.Or(o.ref.Namespace, "default"), Name: o.ref.Name}
}

func (o manifestObject) problem(field, code, message string) output.Problem {
	p := output.Problem{File: o.document.File, Field: field, Code: code, Message: message}
	if o.ref.Name != "" && o.ref.Kind != "" {
		p.Object = output.RefName(o.ref)
	}
	p.Line, p.Column = o.document.Position(field)
	return p
}

// refOf is the name that a document gives its object; what is missing is empty.
func refOf(d manifest.Document) client.Ref {
	apiVersion, _ := d.Value["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	if !strings.Contains(apiVersion, "/") {
		group = ""
	}
	kind, _ := d.Value["kind"].(string)
	metadata, _ := d.Value["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return client.Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}
}
