package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/Khan/genqlient/graphql"

	"isthmus.dev/isthmus/internal/text"
)

// maxAnswer is the largest answer in bytes.
const maxAnswer = 256 << 20

// Answer is an answer of the hub, its parts as they came.
type Answer struct {
	Data       json.RawMessage `json:"data,omitempty"`
	Errors     []GraphQLError  `json:"errors,omitempty"`
	Extensions json.RawMessage `json:"extensions,omitempty"`
}

func (a Answer) err() error {
	if len(a.Errors) == 0 {
		return nil
	}
	return &Error{Errors: a.Errors}
}

// given are variables without the fields that are nil. The types of operations.gen.go write them as null, also those that are new in
// this version's schema: an older hub refuses a field that it does not know, and does not miss one that is not there. An empty list, false
// and 0 are given, which tags with omitempty would not tell from nil.
type given struct{ variables any }

// MarshalJSON writes the variables.
func (g given) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(g.variables)
	if err != nil {
		return nil, err
	}
	exact := json.NewDecoder(bytes.NewReader(text))
	exact.UseNumber()
	var all any
	if err := exact.Decode(&all); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	plain := json.NewEncoder(&out)
	plain.SetEscapeHTML(false) // what encodes the request decides
	err = plain.Encode(withoutNulls(all))
	return out.Bytes(), err
}

// withoutNulls removes the members of objects that are null, at any depth.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if member == nil {
				delete(value, name)
				continue
			}
			value[name] = withoutNulls(member)
		}
	case []any:
		for i, item := range value {
			value[i] = withoutNulls(item)
		}
	}
	return value
}

// MakeRequest sends an operation of operations.gen.go.
func (c *Client) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	sent := Request{Query: request.Query, Operation: request.OpName}
	if request.Variables != nil {
		sent.Variables = given{request.Variables}
	}
	text, err := c.Do(ctx, sent)
	if err != nil {
		return err
	}
	var answer Answer
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.options.URL, err)
	}
	if err := answer.err(); err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Data, response.Data); err != nil {
		return fmt.Errorf("reading the answer of %s to %s: %w", c.options.URL, request.OpName, err)
	}
	return nil
}

// Do sends any query or mutation and returns the hub's answer as it came, errors
// of GraphQL included.
func (c *Client) Do(ctx context.Context, request Request) ([]byte, error) {
	answer, err := c.post(ctx, request, "application/graphql-response+json, application/json;q=0.9")
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // It was only read.
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, unreachable(ctx, c.options.URL, err)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer of %s is larger than %d MiB; ask for less at once", c.options.URL, maxAnswer>>20)
	case !isJSON(answer) || !json.Valid(text):
		return nil, strange(c.options.URL, answer.StatusCode, text)
	}
	return text, nil
}

// post sends an operation; the caller closes the answer's body.
func (c *Client) post(ctx context.Context, request Request, accept string) (*http.Response, error) {
	if c.options.Sent != nil {
		c.options.Sent(request)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("writing the request %s: %w", request.Operation, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.options.URL, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", cmp.Or(c.options.UserAgent, "isthmus-client"))
	if least := c.least.at.Load(); least > 0 {
		r.Header.Set("Isthmus-Min-Revision", strconv.FormatInt(least, 10))
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, unreachable(ctx, c.options.URL, err)
	}
	if strings.HasPrefix(strings.TrimSpace(request.Query), "mutation") {
		if made, err := strconv.ParseInt(answer.Header.Get("Isthmus-Revision"), 10, 64); err == nil { // else the hub has no configuration
			c.least.raise(made)
		}
	}
	return answer, nil
}

// leastRevision is the revision of the configuration that answers must include. It
// rises with the changes that the client makes, so that the client reads what it wrote:
// the next request may reach another hub.
type leastRevision struct{ at atomic.Int64 }

func (r *leastRevision) raise(to int64) {
	for least := r.at.Load(); to > least && !r.at.CompareAndSwap(least, to); least = r.at.Load() {
	}
}

// unreachable says why nothing came, without the URL that net/http puts before.
func unreachable(ctx context.Context, server string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return &UnreachableError{Server: server, Err: err}
}

// strange is an answer that is not GraphQL.
func strange(server string, status int, answer []byte) error {
	const most = 200
	shown := strings.Join(strings.Fields(strings.ToValidUTF8(text.Cut(string(answer), most), "")), " ")
	return &StatusError{Server: server, Status: status, Text: shown}
}

func isJSON(answer *http.Response) bool {
	is, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && (is == "application/json" || is == "application/graphql-response+json")
}
