package transport_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus.dev/isthmus/graph/transport"
)

// sized is a request for query whose variables have that many bytes.
func sized(query string, bytes int) string {
	written, _ := json.Marshal(query)
	return `{"query":` + string(written) + `,"variables":{"a":"` + strings.Repeat("x", bytes) + `"}}`
}

func TestOnlyMutationsHaveLargeBodies(t *testing.T) {
	handler := newHandler(t)
	for name, row := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"a mutation with manifests":  {sized("mutation{change}", 16<<20), 200, ""},
		"a mutation above the limit": {sized("mutation{change}", 17<<20), 413, "17825792 bytes"},
		"a query":                    {sized("{hello}", 1<<20), 413, "1048576 bytes"},
		"a query among mutations": {
			strings.Replace(sized("mutation m{change} query q{hello}", 1<<20), "{", `{"operationName":"q",`, 1),
			413, "1048576 bytes",
		},
		"a mutation among queries": {strings.Replace(sized("mutation m{change} query q{hello}", 1<<20), "{",
			`{"operationName":"m",`, 1), 200, ""},
		"a subscription":              {sized("subscription{ticks}", 1<<20), 413, "1048576 bytes"},
		"a document of that size":     {`{"query":"mutation{change} #` + strings.Repeat("x", 1<<20) + `"}`, 413, "1048576 bytes"},
		"tokens are limited as usual": {sized("mutation{change"+strings.Repeat(" a:change", 10_000)+"}", 1<<20), 422, "token"},
		"what does not parse":         {sized("mutation{", 1<<20), 400, ""},
		"what is not JSON":            {strings.Repeat("[", 2<<20), 400, "nested"},
		"as large as everybody's may": {sized("{hello}", 1<<20-44), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, handler, postBody(row.body))
			if got.status != row.status || !strings.Contains(got.body, row.says) {
				t.Errorf("%d bytes got %d %.300s", len(row.body), got.status, got.body)
			}
		})
	}
}

// held gives the start of a body and then waits.
type held struct {
	start io.Reader
	more  chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	if n, err := h.start.Read(p); err == nil {
		return n, nil
	}
	h.more <- struct{}{} // Everything before has been taken.
	<-h.more
	return 0, io.ErrUnexpectedEOF
}

func TestFewLargeBodiesAreHeldAtOnce(t *testing.T) {
	handler := transport.New(newFakeSchema(t), transport.Options{Limits: transport.Limits{LargeBodies: 1}})
	body := &held{start: strings.NewReader(sized("mutation{change}", 2<<20)), more: make(chan struct{})}
	first := make(chan int)
	go func() {
		request := httptest.NewRequest(http.MethodPost, "/graphql", body)
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		first <- recorder.Code
	}()
	<-body.more
	if got := send(t, handler, postBody(sized("mutation{change}", 2<<20))); got.status != 429 || got.header.Get("Retry-After") == "" ||
		got.code() != "RATE_LIMITED" {
		t.Errorf("the second got %d %s", got.status, got.body)
	}
	if got := send(t, handler, post("mutation{change}")); got.status != 200 {
		t.Errorf("a small one got %d %s", got.status, got.body)
	}
	body.more <- struct{}{}
	if status := <-first; status != 400 {
		t.Errorf("the first, which breaks off, got %d", status)
	}
	if got := send(t, handler, postBody(sized("mutation{change}", 2<<20))); got.status != 200 {
		t.Errorf("the place was not given back: %d %s", got.status, got.body)
	}
}

func TestBodyWithoutLengthIsLimited(t *testing.T) {
	handler := newHandler(t)
	endless := io.MultiReader(strings.NewReader(`{"query":"mutation{change}","variables":{"a":"`), endlessX{})
	if recorder := newRecorder(t, handler, endless); recorder.Code != 413 || !bytes.Contains(recorder.Body.Bytes(), []byte("17825792")) {
		t.Errorf("got %d %.300s", recorder.Code, recorder.Body)
	}
}

type endlessX struct{}

func (endlessX) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
