package cmdutil

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"isthmus.dev/isthmus/client"
)

// DescribeError is an error for people: what is wrong and what to do next, in one
// line.
func DescribeError(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if next := nextStep(err); next != "" {
		text += "; " + next
	}
	return text
}

// nextStep is what to do about an error that does not say it itself, or "".
func nextStep(err error) string {
	var status *client.StatusError
	var unreachable *client.UnreachableError
	switch {
	case errors.As(err, &status) && strings.Contains(status.Text, "HTTP request to an HTTPS server"):
		return "the hub uses TLS there; use https:// in --server"
	case errors.As(err, &status):
		return "check --server, ISTHMUS_SERVER or the context (\"isthmus context show\")"
	case errors.As(err, &unreachable):
		step := unreachableStep(unreachable)
		if step == "" && strings.HasPrefix(unreachable.Server, "https:") {
			step = "check --server, and that --tls-cert and --tls-key name a certificate that the hub accepts"
		}
		return cmp.Or(step, "check --server, ISTHMUS_SERVER or the context (\"isthmus context show\"), and that the hub runs")
	}
	return answerStep(client.CodeOf(err))
}

// answerStep is what to do about an error of the hub's GraphQL by its code.
func answerStep(code string) string {
	switch code {
	case "":
		return ""
	case "UNAVAILABLE", "RATE_LIMITED":
		return "try again in a moment"
	case "GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED":
		return "if the hub is of another version than this program (\"isthmus version\", \"isthmus query '{ hub { version } }'\"), use the program of its version"
	case "PERSISTED_QUERY_NOT_SUPPORTED":
		return "send the document itself"
	case "TOO_COMPLEX":
		return "ask for less at once"
	case "UNAUTHENTICATED", "FORBIDDEN":
		return "name a certificate that the hub accepts with --tls-cert and --tls-key"
	case "INTERNAL":
		return "the hub's log has more under that ID"
	case "BAD_USER_INPUT":
		return "correct the request and repeat; --help lists the values of flags"
	case "NOT_FOUND":
		return "\"isthmus get services -A\", \"isthmus get proxies\" and \"isthmus history\" list what exists"
	case "CONFLICT", "PRECONDITION_FAILED":
		return "read the current state, then repeat"
	}
	return "if the hub is of another version than this program (\"isthmus version\"), use the program of its version"
}

// sentFirst is in net/http's error for a server that sends before it is asked, as one
// of HTTP/2 does. Whether that or a malformed response is found first, is a race.
const sentFirst = "readLoopPeekFailLocked: %!w(<nil>)"

func unreachableStep(err error) string {
	var unknownCA x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "wait longer with --timeout, or check --server"
	case errors.Is(err, context.Canceled):
		return "it was interrupted; run it again"
	case errors.As(err, &unknownCA):
		return "name the CA that signs the hub's certificate with --tls-ca or ISTHMUS_TLS_CA"
	case errors.As(err, &wrongName), errors.As(err, &invalid):
		return "connect to a name in the hub's certificate (--server), and check that the certificate has not expired"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the hub uses plaintext there; use http:// in --server"
	case strings.Contains(err.Error(), "malformed HTTP response"), strings.Contains(err.Error(), sentFirst):
		return "this is not GraphQL, but perhaps the hub's xDS address; use that of --graphql-addr, by default port 8080"
	case strings.Contains(err.Error(), "remote error: tls:"):
		return "the hub requires a client certificate signed by a CA of its --tls-client-ca; name it with --tls-cert and --tls-key"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return "start a hub with \"isthmus serve --dev\", or name yours with --server, ISTHMUS_SERVER or a context"
	}
	return ""
}

// ErrTimeout is that the time of --timeout is over.
var ErrTimeout = errors.New("no answer in time")
