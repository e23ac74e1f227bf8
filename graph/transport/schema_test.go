package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/graph/transport"
)

const schemaText = `
type Query {
  hello(name: String): String
  echo(size: Int, share: Float): String
  items(first: Int, after: String, last: Int, before: String): ItemConnection!
  item: Item!
  refused: String
  broken: String
  panics: String
  slow: String
}
type Mutation { change: String }
type Subscription {
  ticks(count: Int = 3): Int
  feed: String
  denied: String
  cut: String
  waits: String
  explodes: String
  lingers: Item
  floods: String
  works: String
  items(first: Int): ItemConnection!
}
type Item { id: ID! name: String parent: Item items(first: Int, last: Int): ItemConnection! }
type ItemEdge { cursor: String! node: Item! }
type PageInfo { hasNextPage: Boolean! }
type ItemConnection { totalCount: Int! nodes: [Item!]! edges: [ItemEdge!]! pageInfo: PageInfo! }
`

// fakeSchema answers every operation with its root fields' names, apart from
// those whose name says what happens.
type fakeSchema struct {
	flooded   atomic.Int64 // events of floods that were executed
	executing atomic.Int64 // events of works that are being executed
	schema    *ast.Schema
	slow      chan struct{}
	feed      chan string   // Events of the subscription feed.
	work      chan struct{} // Each value ends the execution of an event of works.
	ended     chan struct{} // Gets a value for each subscription whose context has ended.
}

func newFakeSchema(t *testing.T) *fakeSchema {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "test", Input: schemaText})
	if err != nil {
		t.Fatal(err)
	}
	return &fakeSchema{
		schema: schema, slow: make(chan struct{}), feed: make(chan string), work: make(chan struct{}),
		ended: make(chan struct{}, 100),
	}
}

func (f *fakeSchema) Schema() *ast.Schema { return f.schema }

func (f *fakeSchema) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

func (f *fakeSchema) Exec(ctx context.Context) graphql.ResponseHandler {
	operation := graphql.GetOperationContext(ctx).Operation
	if operation.Operation == ast.Subscription {
		context.AfterFunc(ctx, func() { f.ended <- struct{}{} })
		return f.subscribe(ctx, operation.SelectionSet[0].(*ast.Field))
	}
	return func(ctx context.Context) *graphql.Response {
		return &graphql.Response{Data: f.data(ctx, operation.SelectionSet)}
	}
}

func (f *fakeSchema) data(ctx context.Context, set ast.SelectionSet) json.RawMessage {
	answer := map[string]any{}
	for _, selection := range set {
		field, ok := selection.(*ast.Field)
		if !ok {
			continue
		}
		answer[field.Alias] = field.Name
		switch field.Name {
		case "refused":
			answer[field.Alias] = nil
			graphql.AddError(ctx, transport.Errorf(transport.NotFound, "no service %q", "a"))
		case "broken":
			answer[field.Alias] = nil
			graphql.AddError(ctx, errors.New("dial tcp: token=hunter2"))
		case "panics":
			panic("token=hunter2")
		case "slow":
			<-f.slow
		}
	}
	data, _ := json.Marshal(answer)
	return data
}

// subscribe does what the name of the field says.
func (f *fakeSchema) subscribe(ctx context.Context, field *ast.Field) graphql.ResponseHandler {
	sent := 0
	last := 3
	if argument := field.Arguments.ForName("count"); argument != nil {
		_ = json.Unmarshal([]byte(argument.Value.Raw), &last)
	}
	if field.Name == "denied" {
		graphql.AddError(ctx, transport.Errorf(transport.Forbidden, "not for you"))
		return nil
	}
	return func(event context.Context) *graphql.Response {
		sent++
		switch field.Name {
		case "ticks":
			if sent > last {
				return nil
			}
			return data(field, sent)
		case "feed":
			select {
			case text, open := <-f.feed:
				if !open {
					return nil
				}
				if ctx.Err() != nil || event.Err() != nil {
					// It is for the next, which begins once this one is done.
					go func() { f.feed <- text }()
					return nil
				}
				return data(field, text)
			case <-event.Done():
				return nil
			}
		case "cut":
			if sent > 1 {
				transport.EndWith(ctx, transport.Errorf(transport.PreconditionFailed, "start again"))
				return nil
			}
			return data(field, "once")
		case "waits":
			if sent > 1 {
				<-event.Done()
				return nil
			}
			return data(field, "x")
		case "lingers":
			return resolved(event, field, func() (any, error) {
				<-event.Done()
				return nil, event.Err()
			})
		case "floods":
			return resolved(event, field, func() (any, error) {
				f.flooded.Add(1)
				return strings.Repeat("x", 1<<20), nil
			})
		case "works":
			if sent > 1 {
				return nil
			}
			return resolved(event, field, func() (any, error) { return f.works(event) })
		}
		panic("token=hunter2")
	}
}

// works is executed until the test ends it.
func (f *fakeSchema) works(ctx context.Context) (any, error) {
	f.executing.Add(1)
	defer f.executing.Add(-1)
	select {
	case <-f.work:
		return "done", nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// resolved is an event whose field is resolved as the executor does it.
func resolved(event context.Context, field *ast.Field, resolve func() (any, error)) *graphql.Response {
	value, err := graphql.GetOperationContext(event).ResolverMiddleware(event, func(context.Context) (any, error) { return resolve() })
	if err != nil {
		graphql.AddError(event, err)
		return data(field, nil)
	}
	return data(field, value)
}

func data(field *ast.Field, value any) *graphql.Response {
	written, _ := json.Marshal(map[string]any{field.Alias: value})
	return &graphql.Response{Data: written}
}

type call struct {
	method, target, body string
	headers              map[string]string
}

// post is a well-formed request for query.
func post(query string) call {
	body, _ := json.Marshal(map[string]string{"query": query})
	return postBody(string(body))
}

func postBody(body string) call {
	return call{http.MethodPost, "/graphql", body, map[string]string{"Content-Type": "application/json"}}
}

func get(query string) call { return call{http.MethodGet, "/graphql?" + query, "", nil} }

func (c call) with(name, value string) call {
	headers := map[string]string{name: value}
	for known, given := range c.headers {
		if known != name {
			headers[known] = given
		}
	}
	c.headers = headers
	return c
}

type answer struct {
	status int
	header http.Header
	body   string
	Errors []struct {
		Message    string
		Path       []any
		Extensions struct{ Code, RequestID string }
	}
	Data json.RawMessage
}

func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

func send(t *testing.T, handler http.Handler, c call) answer {
	t.Helper()
	var body io.Reader
	if c.body != "" {
		body = strings.NewReader(c.body)
	}
	request := httptest.NewRequest(c.method, "http://hub.example"+c.target, body)
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	got := answer{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		t.Fatalf("the answer is not JSON: %v\n%s", err, got.body)
	}
	return got
}

func newHandler(t *testing.T) http.Handler {
	t.Helper()
	return transport.New(newFakeSchema(t), transport.Options{Log: slog.New(slog.DiscardHandler)})
}

func newRecorder(t *testing.T, handler http.Handler, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/graphql", body)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}
