package graph_test

import (
	"strings"
	"testing"
)

// TestErrorsOfMinRevisionNameTheField that has the argument, and not only the argument.
func TestErrorsOfMinRevisionNameTheField(t *testing.T) {
	h := newHub(t)
	for query, where := range map[string]string{
		`{a:services{totalCount} b:clusters(minRevision:"x"){totalCount}}`:            `"path":["b"]`,
		`{a:services{totalCount}` + "\n" + `b:clusters(minRevision:"7"){totalCount}}`: `"path":["b"]`,
	} {
		_, errs := h.ask(query, nil)
		if !strings.Contains(errs, where) || !strings.Contains(errs, `"locations":[{"line":`) {
			t.Errorf("%s is answered %s", query, errs)
		}
	}
}
