package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// firstRead is what a body has room for at first, in bytes.
const firstRead = 16 << 10

// fromRequestBody reads a body in two steps. Up to Limits.Body every operation
// is taken. What is larger has to be a mutation: its variables may hold manifests,
// while its document stays as bounded as any other. Few such bodies are held at
// the same time, since each is in memory as a whole; done gives the place back.
func (h *Handler) fromRequestBody(w http.ResponseWriter, r *http.Request) (_ *graphql.RawParams, done func(), fault *refusal) {
	limits := h.options.Limits
	limited := http.MaxBytesReader(w, r.Body, max(limits.Body, limits.LargeBody))
	// What a client says it will send is not believed: memory grows with what arrives.
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), firstRead)+bytes.MinRead))
	done = func() {}
	_, err := io.CopyN(body, limited, limits.Body+1)
	large := int64(body.Len()) > limits.Body
	if large && err == nil {
		var ok bool
		if done, ok = h.largePlace(); !ok {
			w.Header().Set("Retry-After", "1")
			return nil, nil, refuse(http.StatusServiceUnavailable, Unavailable,
				fmt.Sprintf("the hub takes %d bodies of more than %d bytes at the same time; try again", limits.LargeBodies, limits.Body))
		}
		_, err = body.ReadFrom(limited)
	}
	params, fault := h.fromLimitedBody(body.Bytes(), err)
	if fault == nil && large {
		fault = limits.suitsLarge(params)
	}
	if fault != nil {
		done()
		return nil, nil, fault
	}
	return params, done, nil
}

func (h *Handler) largePlace() (leave func(), ok bool) {
	select {
	case h.large <- struct{}{}:
		return sync.OnceFunc(func() { <-h.large }), true
	default:
		return func() {}, false
	}
}

func (h *Handler) fromLimitedBody(body []byte, err error) (*graphql.RawParams, *refusal) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuse(http.StatusRequestEntityTooLarge, BadUserInput,
			fmt.Sprintf("the request body has more than %d bytes", tooLarge.Limit))
	case err != nil && !errors.Is(err, io.EOF):
		return nil, refuse(http.StatusBadRequest, BadUserInput, "the request body ended too early")
	}
	return fromBody(body)
}

// suitsLarge refuses a large body whose operation is none that may have one.
func (l Limits) suitsLarge(params *graphql.RawParams) *refusal {
	if int64(len(params.Query)) > l.Body {
		return refuse(http.StatusRequestEntityTooLarge, BadUserInput, fmt.Sprintf("the document has more than %d bytes", l.Body))
	}
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: params.Query}, l.Tokens)
	if err != nil {
		return nil // Is refused as every other document that does not parse.
	}
	operation := document.Operations.ForName(params.OperationName)
	if operation != nil && operation.Operation != ast.Mutation {
		return refuse(http.StatusRequestEntityTooLarge, BadUserInput,
			fmt.Sprintf("the request body has more than %d bytes; only a mutation's may have up to %d", l.Body, l.LargeBody))
	}
	return nil
}
