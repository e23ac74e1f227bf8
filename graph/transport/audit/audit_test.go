//go:build audit

// Package audit runs the audit suite of the npm package graphql-http against
// the hub's transport. It needs node and the packages of the lockfile.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/graph/transport"
)

// deviations are audits of an older draft that the hub fails on purpose, with
// the reason. An audit that is listed and passes fails the test, too.
var deviations = map[string]string{
	"423L": malformed, "LKJ0": malformed, "LKJ1": malformed, "LKJ2": malformed, "LKJ3": malformed, "6C00": malformed,
	"6C01": malformed, "6C02": malformed, "6C03": malformed, "4760": malformed, "4761": malformed, "4762": malformed,
	"4763": malformed, "58B0": malformed, "58B1": malformed, "58B2": malformed, "58B3": malformed, "3E3A": malformed,
	"572B": sameForJSON, "FDE2": sameForJSON, "7B9B": sameForJSON,
	"86EE": coercion,
}

// The draft of 2026-08-06 is newer than the suite; these are its rules.
const (
	malformed   = "parameters of a wrong type are 422 now; 400 is left to what is not JSON or not GraphQL"
	sameForJSON = "clients of application/json get the same status codes"
	coercion    = "variables that do not fit are 422 now, like every other failed validation"
)

type typeNameSchema struct{ schema *ast.Schema }

func (s typeNameSchema) Schema() *ast.Schema { return s.schema }

func (typeNameSchema) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

func (typeNameSchema) Exec(context.Context) graphql.ResponseHandler {
	return graphql.OneShot(&graphql.Response{Data: json.RawMessage(`{"__typename":"Query"}`)})
}

type result struct{ ID, Name, Status, Reason string }

// TestR45AuditSuite: every audit passes, but for those that are listed.
func TestR45AuditSuite(t *testing.T) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "audit", Input: "type Query { hello: String } type Mutation { change: String }"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(transport.New(typeNameSchema{schema}, transport.Options{Log: slog.New(slog.DiscardHandler)}))
	defer server.Close()

	results := run(t, server.URL+"/graphql")
	if len(results) < 61 {
		t.Errorf("the suite ran %d audits, it has 61", len(results))
	}
	for _, found := range results {
		reason, expected := deviations[found.ID]
		switch passed := found.Status == "ok"; {
		case passed && expected:
			t.Errorf("%s %s passes; it need not be listed any more", found.ID, found.Name)
		case !passed && !expected:
			t.Errorf("%s %s: %s: %s", found.ID, found.Name, found.Status, found.Reason)
		case !passed:
			t.Logf("%s %s: %s, on purpose: %s", found.ID, found.Name, found.Status, reason)
		}
	}
}

func run(t *testing.T, address string) []result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "node", "audit.mjs", address)
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("running the suite (needs node, and npm ci in this folder): %v\n%s", err, stderr.String())
	}
	var results []result
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var found result
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			return results
		} else if err != nil {
			t.Fatal(err)
		}
		results = append(results, found)
	}
}
