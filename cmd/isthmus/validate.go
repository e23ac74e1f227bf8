package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

func validateCommand(io streams) *cobra.Command {
	var from sources
	var format string
	cmd := &cobra.Command{
		Use: "validate -f FILE", Short: "Check manifests without a hub", Args: noArguments,
		Long: `Check manifests without a hub, by the rules and the schemas that a hub of the
same version applies. What depends on other objects only a hub can say:
isthmus apply --dry-run=server.`,
		Example: "  isthmus validate -f config/ -R\n  isthmus validate -f web.yaml -o json",
	}
	from.bind(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "text", "`FORMAT`: text or json")
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := oneOf("output", format, "text", "json"); err != nil {
			return err
		}
		files, err := from.read(io.in)
		if err != nil {
			return err
		}
		return validate(io, format, files)
	}
	return finish(cmd)
}

func validate(io streams, format string, files []client.ManifestInput) error {
	found, problems, err := inspect(files)
	if err != nil {
		return err
	}
	if format == "json" {
		text := jsonText(map[string]any{"files": len(files), "objects": len(found), "problems": slices.Concat([]problem{}, problems)}, "  ")
		if _, err := fmt.Fprintln(io.out, text); err != nil {
			return err
		}
		return problemsError(problems)
	}
	for _, p := range problems {
		if _, err := fmt.Fprintln(io.out, p); err != nil {
			return err
		}
	}
	if err := problemsError(problems); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "%s in %s: valid\n", counted(len(found), "object"), counted(len(files), "file"))
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// tellProblems tells problems on standard error.
func tellProblems(io streams, problems []problem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintln(io.err, p); err != nil {
			return err
		}
	}
	return problemsError(problems)
}

func problemsError(problems []problem) error {
	if len(problems) == 0 {
		return nil
	}
	return failed{code: exitFailed, text: counted(len(problems), "problem") + "; correct the manifests and repeat; \"isthmus api-resources\" lists the kinds"}
}

// manifestObject is an object of the manifests and where it stands.
type manifestObject struct {
	ref      client.Ref
	document manifest.Document
}

// documentsOf reads manifests, each object once, and says what cannot be read.
func documentsOf(files []client.ManifestInput) (found []manifestObject, problems []problem) {
	first := map[client.Ref]manifest.Document{}
	for _, f := range files {
		documents, wrong := manifest.Parse(f.Name, []byte(f.Content), manifest.Limits{})
		for _, w := range wrong {
			problems = append(problems, problem{File: w.File, Line: w.Line, Column: w.Column, Field: w.Field, Code: string(w.Code), Message: w.Message})
		}
		for _, d := range documents {
			object := manifestObject{ref: refOf(d), document: d}
			other, twice := first[object.ref]
			if twice && object.ref.Name != "" {
				problems = append(problems, object.problem("", "DUPLICATE_OBJECT", fmt.Sprintf("the object is defined at %s:%d, too; remove one", other.File, other.Line)))
				continue
			}
			first[object.ref] = d
			found = append(found, object)
		}
	}
	return found, problems
}

// inspect reads manifests and validates each object as a new one. The error is a
// defect of the program.
func inspect(files []client.ManifestInput) ([]manifestObject, []problem, error) {
	set, err := schema.Load()
	if err != nil {
		return nil, nil, err
	}
	found, problems := documentsOf(files)
	for _, object := range found {
		_, refused := set.Admit(object.document.Value, nil)
		for _, p := range refused {
			problems = append(problems, object.problem(p.Field, string(p.Code), p.Message))
		}
	}
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return found, problems, nil
}

func (o manifestObject) problem(field, code, message string) problem {
	p := problem{File: o.document.File, Field: field, Code: code, Message: message}
	if o.ref.Name != "" && o.ref.Kind != "" {
		p.Object = refName(o.ref)
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
