package telemetry

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"
)

// functions are those that Envoy's evaluator has. It has neither macros for lists nor
// conversions to texts.
var functions = []string{
	"_?_:_", "_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_[_]", "@in",
	"size", "contains", "startsWith", "endsWith", "matches", "int", "uint", "double", "timestamp", "duration",
	"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes",
	"getSeconds", "getMilliseconds",
}

// CheckExpression reports an expression that Envoy would refuse, and the listener with it.
func CheckExpression(text string) error {
	if text == "" {
		return nil
	}
	p, err := parser.NewParser(parser.Macros(parser.AllMacros...))
	if err != nil {
		return fmt.Errorf("preparing the parser: %w", err)
	}
	parsed, issues := p.Parse(common.NewTextSource(text))
	if len(issues.GetErrors()) > 0 {
		return fmt.Errorf("it is not an expression of CEL: %s", issues.GetErrors()[0].Message)
	}
	var wrong error
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.ComprehensionKind, e.Kind() == ast.StructKind, e.Kind() == ast.MapKind:
			wrong = fmt.Errorf("proxies have neither macros such as exists, nor objects")
		case e.Kind() == ast.CallKind && !slices.Contains(functions, e.AsCall().FunctionName()):
			wrong = fmt.Errorf("proxies do not have the function %q", e.AsCall().FunctionName())
		}
	}))
	return wrong
}
