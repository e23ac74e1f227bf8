package fetch

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"isthmus.dev/isthmus/internal/text"
)

// mostCause bounds a cause in bytes: it may quote what a server says.
const mostCause = 256

// refusal says what the hub refuses to do.
type refusal string

func (r refusal) Error() string { return string(r) }

// causes are errors whose text is the same for every try. What else the text of an error has may be a
// secret, or a port that differs each time.
var causes = []struct {
	is   func(error) bool
	text string
}{
	{isOf[*json.SyntaxError], "the answer is not JSON"},
	{isOf[*json.UnmarshalTypeError], "the answer is not a JSON Web Key Set"},
	{isNoName, "the name of the server does not exist"},
	{isOf[*net.DNSError], "the name of the server cannot be resolved"},
	{isTimeout, "the server did not answer in time"},
	{isOf[*tls.CertificateVerificationError], "the certificate of the server is not trusted"},
	{func(err error) bool { return errors.Is(err, http.ErrSchemeMismatch) }, "the server does not use TLS"},
	{func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }, "the server refuses connections"},
	{isOf[*net.OpError], "the connection to the server failed"},
}

// cause says why keys were not fetched, in words that have no part of the URI that may be a secret.
func cause(err error) string {
	var refused refusal
	if errors.As(err, &refused) {
		return refused.Error()
	}
	for _, c := range causes {
		if c.is(err) {
			return c.text
		}
	}
	var of *url.Error
	if errors.As(err, &of) {
		return "the server does not answer as HTTP demands"
	}
	return text.Cut(err.Error(), mostCause)
}

func isOf[E error](err error) bool {
	var is E
	return errors.As(err, &is)
}

func isNoName(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

func isTimeout(err error) bool {
	var is net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &is) && is.Timeout()
}
