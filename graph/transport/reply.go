package transport

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// statusPartialSuccess is the draft's status of data that comes with errors.
const statusPartialSuccess = 294

const unwritable = `{"errors":[{"message":"the answer cannot be written","extensions":{"code":"INTERNAL"}}]}`

// maxErrors bounds the errors of one answer.
const maxErrors = 20

// refusal is a request that is answered without an operation.
type refusal struct {
	status int
	code   Code
	text   string
	allow  string // The Allow header of a 405.
}

func refuse(status int, code Code, text string) *refusal {
	return &refusal{status: status, code: code, text: text}
}

// envelope is an answer. data is absent, not null, when nothing was executed.
type envelope struct {
	Errors     gqlerror.List   `json:"errors,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Extensions map[string]any  `json:"extensions,omitempty"`
}

type replier struct {
	w         http.ResponseWriter
	mediaType string
	id        string
	operation ast.Operation // "" until it is known
	failed    bool          // the answer holds an error
	streamed  bool          // the answer is a stream, which is counted by itself
	revisions *revisions
	held      *hold // counts the answer while it is written; nil: it is short
}

func (r *replier) fault(fault *refusal) {
	if fault.allow != "" {
		r.w.Header().Set("Allow", fault.allow)
	}
	if fault.status == http.StatusServiceUnavailable || fault.status == http.StatusTooManyRequests {
		r.w.Header().Set("Retry-After", "1")
	}
	r.write(fault.status, envelope{Errors: gqlerror.List{{
		Message:    fault.text,
		Extensions: map[string]any{"code": string(fault.code), "requestId": r.id},
	}}})
}

func (r *replier) send(status int, answer *graphql.Response) { r.write(status, enveloped(answer)) }

func enveloped(answer *graphql.Response) envelope {
	return envelope{
		Errors: answer.Errors[:min(len(answer.Errors), maxErrors)], Data: answer.Data, Extensions: answer.Extensions,
	}
}

func (r *replier) write(status int, answer envelope) {
	r.failed = r.failed || len(answer.Errors) > 0
	parts, err := answer.parts()
	if err != nil {
		status, parts = http.StatusInternalServerError, [][]byte{[]byte(unwritable)}
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if r.held != nil {
		if fault := r.held.more(int64(size)); fault != nil {
			r.held = nil
			r.fault(fault)
			return
		}
	}
	header := r.w.Header()
	header.Set("Content-Type", r.mediaType+"; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(size))
	r.revisions.set(header)
	r.w.WriteHeader(status)
	for _, p := range parts {
		if _, err := r.w.Write(p); err != nil {
			return // the client has gone
		}
	}
}

var errData = errors.New("the data are not JSON")

// parts returns the answer's JSON. The data, which may be large, are a part of their
// own, without a copy.
func (e envelope) parts() ([][]byte, error) {
	data := e.Data
	e.Data = nil
	rest, err := json.Marshal(e)
	switch {
	case err != nil || data == nil:
		return [][]byte{rest}, err
	case !json.Valid(data):
		return nil, errData
	case len(rest) == len("{}"):
		return [][]byte{[]byte(`{"data":`), data, []byte("}")}, nil
	}
	return [][]byte{rest[:len(rest)-1], []byte(`,"data":`), data, []byte("}")}, nil
}

func setAnswerHeaders(header http.Header, id string) {
	header.Set("X-Request-Id", id)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept, Origin, Sec-Fetch-Site")
}
