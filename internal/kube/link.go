package kube

import (
	"errors"
	"io"
	"net/textproto"
	"strings"
)

// linkError marks what went wrong on the way to the server or back: nothing that the server said. Its text is that of
// the error itself, because client-go knows some of them by their texts.
type linkError struct{ error }

func (e linkError) Unwrap() error { return e.error }

// onLink marks an error of a connection. io.EOF and io.ErrUnexpectedEOF stay as they are: others compare them.
func onLink(err error) error {
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // the very values that others compare
		return err
	}
	return linkError{err}
}

// garbled reports whether the other side answered and does not speak HTTP as an API server does. The standard library has no
// types for it that others can name.
func garbled(err error) bool {
	var protocol textproto.ProtocolError
	text := err.Error()
	return errors.As(err, &protocol) || strings.Contains(text, "malformed HTTP") ||
		strings.Contains(text, "response headers exceeded") || strings.Contains(text, "connection error: ") // of HTTP/2
}
