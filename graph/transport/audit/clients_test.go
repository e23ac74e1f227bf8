//go:build audit

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

const streamed = `
type Query { hello: String }
type Mutation { change: String }
type Subscription { ticks(count: Int = 3): Int endless: Int }
`

// countingSchema answers subscriptions with numbers from 1.
type countingSchema struct {
	schema *ast.Schema
	ended  chan struct{}
}

func (s countingSchema) Schema() *ast.Schema { return s.schema }

func (countingSchema) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

func (s countingSchema) Exec(ctx context.Context) graphql.ResponseHandler {
	operation := graphql.GetOperationContext(ctx)
	field := operation.Operation.SelectionSet[0].(*ast.Field)
	answer := func(value any) *graphql.Response {
		data, _ := json.Marshal(map[string]any{field.Alias: value})
		return &graphql.Response{Data: data}
	}
	if operation.Operation.Operation != ast.Subscription {
		return graphql.OneShot(answer("yes"))
	}
	if field.Name == "endless" {
		context.AfterFunc(ctx, func() { s.ended <- struct{}{} })
	}
	sent, last := 0, int64(3)
	if given, ok := operation.Variables["n"].(int64); ok {
		last = given
	}
	return func(ctx context.Context) *graphql.Response {
		sent++
		if field.Name == "endless" && sent > 1 {
			<-ctx.Done()
			return nil
		}
		if int64(sent) > last {
			return nil
		}
		return answer(sent)
	}
}

func TestClients(t *testing.T) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "clients", Input: streamed})
	if err != nil {
		t.Fatal(err)
	}
	counting := countingSchema{schema, make(chan struct{}, 10)}
	server := httptest.NewServer(transport.New(counting, transport.Options{Log: slog.New(slog.DiscardHandler)}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "node", "clients.mjs", server.URL+"/graphql")
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("running the clients (needs node, and npm ci in this folder): %v\n%s", err, stderr.String())
	}
	three := `[{"data":{"ticks":1}},{"data":{"ticks":2}},{"data":{"ticks":3}}]`
	want := map[string][2]string{ // The events, and how they ended.
		"graphql-ws subscription": {three, "complete"}, "graphql-sse subscription": {three, "complete"},
		"graphql-ws query": {`[{"data":{"hello":"yes"}}]`, "complete"}, "graphql-sse query": {`[{"data":{"hello":"yes"}}]`, "complete"},
		"graphql-ws mutation": {`[{"data":{"change":"yes"}}]`, "complete"}, "graphql-sse mutation": {`[{"data":{"change":"yes"}}]`, "complete"},
		"graphql-ws variables": {`[{"data":{"ticks":1}}]`, "complete"}, "graphql-sse variables": {`[{"data":{"ticks":1}}]`, "complete"},
		"graphql-ws left": {`[{"data":{"endless":1}}]`, "complete"}, "graphql-sse left": {`[{"data":{"endless":1}}]`, "complete"},
		"graphql-ws invalid": {`[]`, "GRAPHQL_VALIDATION_FAILED"}, "graphql-sse invalid": {"", "complete"},
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var found struct {
			Name, End string
			Events    json.RawMessage
		}
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		expected, known := want[found.Name]
		if !known || found.End != expected[1] || expected[0] != "" && string(found.Events) != expected[0] {
			t.Errorf("%s: %s, then %s; want %v", found.Name, found.Events, found.End, expected)
		}
		if expected[0] == "" && !bytes.Contains(found.Events, []byte("GRAPHQL_VALIDATION_FAILED")) {
			t.Errorf("%s: %s", found.Name, found.Events)
		}
		delete(want, found.Name)
	}
	for name := range want {
		t.Errorf("%s did not run", name)
	}
	for range 2 { // One of each client was left; the hub has noticed.
		select {
		case <-counting.ended:
		case <-ctx.Done():
			t.Fatal("a subscription that its client left goes on")
		}
	}
}
