package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/session"
)

type queryFlags struct {
	file, operation string
	variables       []string
}

func queryCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var q queryFlags
	cmd := &cobra.Command{
		Use: "query [QUERY]", Short: "Send a GraphQL document", Args: cmdutil.AtMost(1),
		Long: `Send a GraphQL document and print the answer as JSON. A subscription prints one
event per line. Exit code 1: the answer has errors, which are also printed to
standard error.

Variables of type String or ID are strings; other values are JSON.`,
		Example: `  isthmus query '{ hub { version } }'
  isthmus query -f services.graphql -v first=10 -v 'filter={"namespace":"shop"}'
  isthmus query 'subscription { changes { cursor snapshotVersion } }'`,
	}
	f := cmd.Flags()
	r.Bind(f)
	f.StringVarP(&q.file, "filename", "f", "", "`FILE` with the document, or - for standard input")
	f.StringArrayVarP(&q.variables, "variable", "v", nil, "`NAME=VALUE` of a variable; may be repeated")
	f.StringVar(&q.operation, "operation", "", "`NAME` of the operation, if the document has several")
	cmd.RunE = session.WithStream(&r, io, func(ctx context.Context, s *session.Session, args []string) error { return q.run(ctx, s, args) })
	return cmdutil.Finish(cmd)
}

func (q *queryFlags) run(ctx context.Context, s *session.Session, args []string) error {
	document, err := q.document(s.IO, args)
	if err != nil {
		return err
	}
	request := client.Request{Query: document, Operation: q.operation}
	operation := q.parse(document)
	request.Variables, err = q.read(operation)
	if err != nil {
		return err
	}
	if operation != nil && operation.Operation == ast.Subscription {
		return streamEvents(ctx, s, request)
	}
	ctx, cancel := s.Within(ctx)
	defer cancel()
	answer, err := s.Do(ctx, request)
	if err != nil {
		return err
	}
	var shown bytes.Buffer
	if err := json.Indent(&shown, bytes.TrimSpace(answer), "", "  "); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if _, err := fmt.Fprintln(s.IO.Out, shown.String()); err != nil {
		return err
	}
	return errorsOf(answer)
}

func (q *queryFlags) document(io cmdutil.Streams, args []string) (string, error) {
	switch {
	case (len(args) == 0) == (q.file == ""):
		return "", cmdutil.Usagef("\"isthmus query\" needs either a document or -f; see \"isthmus query --help\"")
	case len(args) == 1:
		return args[0], nil
	case q.file == cmdutil.Stdin:
		if io.In == nil {
			return "", cmdutil.Usagef("-f -: there is no standard input; write the document as an argument")
		}
		data, err := cmdutil.ReadLimited(io.In)
		if err != nil {
			return "", fmt.Errorf("reading standard input: %w", err)
		}
		return string(data), nil
	}
	data, err := cmdutil.ReadRegular(q.file, os.Stat, os.Open)
	if err != nil {
		return "", fmt.Errorf("-f: %w", err)
	}
	return string(data), nil
}

// parse finds the operation that is meant; nil: the hub will say what is wrong.
func (q *queryFlags) parse(document string) *ast.OperationDefinition {
	parsed, err := parser.ParseQuery(&ast.Source{Name: "query", Input: document})
	if err != nil {
		return nil
	}
	return parsed.Operations.ForName(q.operation)
}

// read gives the variables the types that the operation declares.
func (q *queryFlags) read(operation *ast.OperationDefinition) (map[string]any, error) {
	values := map[string]any{}
	for _, given := range q.variables {
		name, text, ok := strings.Cut(given, "=")
		name = strings.TrimPrefix(name, "$")
		if !ok || name == "" {
			return nil, cmdutil.Usagef("-v: %q is not NAME=VALUE", given)
		}
		if _, twice := values[name]; twice {
			return nil, cmdutil.Usagef("-v: %s is given twice; give it once", name)
		}
		values[name] = variable(operation, name, text)
	}
	if missing := missingVariable(operation, values); missing != "" {
		return nil, cmdutil.Usagef("the operation needs the variable $%[1]s; add -v %[1]s=VALUE", missing)
	}
	if len(values) == 0 {
		return nil, nil
	}
	return values, nil
}

// missingVariable is the first that the operation cannot do without, and that is not given.
func missingVariable(operation *ast.OperationDefinition, given map[string]any) string {
	if operation == nil {
		return ""
	}
	for _, declared := range operation.VariableDefinitions {
		if _, ok := given[declared.Variable]; !ok && declared.Type.NonNull && declared.DefaultValue == nil {
			return declared.Variable
		}
	}
	return ""
}

func variable(operation *ast.OperationDefinition, name, text string) any {
	if operation != nil {
		declared := operation.VariableDefinitions.ForName(name)
		if declared != nil && (declared.Type.NamedType == "String" || declared.Type.NamedType == "ID") && text != "null" {
			return text
		}
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

// streamEvents prints each event in a line, until the hub or the context ends it.
func streamEvents(ctx context.Context, s *session.Session, request client.Request) error {
	var failure error
	err := s.Stream(ctx, request, func(answer []byte) error {
		if err := errorsOf(answer); err != nil {
			failure = err
		}
		_, err := fmt.Fprintln(s.IO.Out, string(answer))
		return err
	})
	if ctx.Err() != nil {
		return nil // the user ended the stream
	}
	if err != nil {
		return err
	}
	return failure
}

// errorsOf is what an answer says is wrong.
func errorsOf(answer []byte) error {
	var said client.Answer
	if err := json.Unmarshal(answer, &said); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if len(said.Errors) == 0 {
		return nil
	}
	err := &client.Error{Errors: said.Errors}
	switch err.Code() {
	case "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED":
		return cmdutil.Failed{Code: cmdutil.ExitFailed, Text: strings.TrimSuffix(err.Error(), ".") +
			"; the page /graphiql of the hub shows what can be asked"}
	}
	return err
}
