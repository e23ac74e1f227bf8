package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
)

// gate refuses documents that are too large in any measure before they are
// validated, since validation itself takes more than linear time.
type gate struct {
	limits     Limits
	known      *documents
	hideSchema bool
}

func (gate) ExtensionName() string                   { return "IsthmusGate" }
func (gate) Validate(graphql.ExecutableSchema) error { return nil }

func (g gate) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if g.known.has(params.Query) {
		return nil
	}
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: params.Query}, g.limits.Tokens)
	if err != nil {
		return parseError(err)
	}
	if graphql.HasOperationContext(ctx) {
		graphql.GetOperationContext(ctx).Stats.SetExtension(documentKey, document)
	}
	if surrogateInLiteral(params.Query) {
		return coded(ValidationFailed, `a string has an escape from \ud800 to \udfff, half a character; write the character itself`)
	}
	return g.check(document)
}

func parseError(err error) *gqlerror.Error {
	var shown *gqlerror.Error
	if !errors.As(err, &shown) {
		shown = gqlerror.Wrap(err)
	}
	if strings.HasPrefix(shown.Message, "exceeded token limit") {
		return coded(TooComplex, shown.Message)
	}
	shown.Extensions = map[string]any{"code": string(ParseFailed)}
	return shown
}

func coded(code Code, text string) *gqlerror.Error {
	return &gqlerror.Error{Message: text, Extensions: map[string]any{"code": string(code)}}
}

// check measures document, which need not be valid, in time linear in its size.
func (g gate) check(document *ast.QueryDocument) *gqlerror.Error {
	l, literal := g.limits, &documentCounts{}
	literal.document(document)
	shapes := shapes{fragments: document.Fragments, known: make(map[string]shape)}
	whole := shapes.whole(document)
	switch {
	case literal.fault != "":
		return coded(ValidationFailed, literal.fault)
	case shapes.cycle != "":
		return coded(ValidationFailed, fmt.Sprintf("fragment %q contains itself", shapes.cycle))
	case g.hideSchema && whole.introspection > 0:
		return coded(Forbidden,
			"this hub does not answer introspection: graphql.introspection is false; take the schema from schema.graphql of the hub's version")
	}
	for _, measure := range []struct {
		what      string
		has, most int
	}{
		{"operations", len(document.Operations), l.Operations},
		{"fragments", len(document.Fragments), l.Fragments},
		{"bytes in a name", literal.name, l.Name},
		{"aliases", literal.aliases, l.Aliases},
		{"directives", literal.directives, l.Directives},
		{"fields at the top", whole.roots, l.RootFields},
		{"levels", whole.depth, l.Depth},
		{"levels of introspection", whole.introspection, l.IntrospectionDepth},
		{"fields", whole.fields, l.Fields},
	} {
		if measure.has > measure.most {
			return coded(TooComplex, fmt.Sprintf("the document has more than %d %s", measure.most, measure.what))
		}
	}
	return nil
}
