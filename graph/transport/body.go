package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// firstRead is what a body has room for at first, in bytes.
const firstRead = 16 << 10

// readBody reads a body in two steps. Up to Limits.Body every operation is taken.
// What is larger has to be a mutation: its variables may hold manifests, while its
// document stays as bounded as any other. Few such bodies are held at the same time,
// since each is in memory as a whole.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, held *hold) ([]byte, *refusal) {
	limits := h.options.Limits
	limited := heldBody{http.MaxBytesReader(w, r.Body, max(limits.Body, limits.LargeBody)), held}
	// The length that a client announces is not trusted: memory grows with what arrives.
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), firstRead)+bytes.MinRead))
	_, err := io.CopyN(body, limited, limits.Body+1)
	if err == nil && int64(body.Len()) > limits.Body {
		if fault := held.enlarge(); fault != nil {
			err = holdExceeded{fault}
		} else {
			body, err = readRest(body, limited, min(r.ContentLength, limits.LargeBody))
		}
	}
	if errors.As(err, new(holdExceeded)) {
		// A client that still sends would lose the answer with the connection. What is dropped takes no memory.
		_, _ = io.Copy(io.Discard, limited.Reader)
	}
	return body.Bytes(), refusalOfBody(err)
}

// trustFrom is the part of its announced length of which a body is taken to have that length.
const trustFrom = 4

// readRest reads on. A buffer that only doubles takes several times the body on the way.
func readRest(body *bytes.Buffer, from io.Reader, announced int64) (*bytes.Buffer, error) {
	if more := announced/trustFrom - int64(body.Len()); more > 0 {
		if _, err := io.CopyN(body, from, more); err != nil {
			return body, err
		}
	}
	if announced > int64(body.Len()) {
		whole := bytes.NewBuffer(make([]byte, 0, announced+bytes.MinRead))
		whole.Write(body.Bytes())
		body = whole
	}
	_, err := body.ReadFrom(from)
	return body, err
}

func refusalOfBody(err error) *refusal {
	var tooLarge *http.MaxBytesError
	var tooMuch holdExceeded
	switch {
	case errors.As(err, &tooMuch):
		return tooMuch.refusal
	case errors.As(err, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, BadUserInput,
			fmt.Sprintf("the request body has more than %d bytes", tooLarge.Limit))
	case err != nil && !errors.Is(err, io.EOF):
		return refuse(http.StatusBadRequest, BadUserInput, "the request body ended too early")
	}
	return nil
}

func (h *Handler) fromBody(body []byte) (*graphql.RawParams, *refusal) {
	limits := h.options.Limits
	params, fault := fromBody(body, limits.Values)
	if fault == nil && int64(len(body)) > limits.Body {
		fault = limits.suitsLarge(params)
	}
	return params, fault
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
