package manifest_test

import (
	"testing"

	"isthmus.dev/isthmus/federation/config/manifest"
)

// TestR27SyntaxErrorNamesItsLine: the line in which the reader could not go on, also
// inside mappings and lists in braces and brackets.
func TestBY2SyntaxErrorNamesItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\nc: {a: b,, c: d}\nd: 3\n":                   "3:1",
		"a: 1\nb: 2\nc: {a: b: c}\nd: 3\n":                       "3:1",
		"a: 1\nb: 2\nc: {a: b,\n  c: d,\n  e: f: g}\nd: 3\n":     "5:3",
		"a: 1\nb:\n  c: {a: b]\n  d: e\n":                        "3:3",
		"a: 1\nb:\n  c: [a, b}\n  d: e\n":                        "3:3",
		"a: 1\nb: 2\nc: {a: b\nd: 3\n":                           "4:1",
		"a: 1\nb: 2\nc: {a: b, c: d}}\nd: 3\n":                   "3:1",
		"a: 1\nb:\n  c:\n    d: 1\n    e: 2\n   f: 3\ng: 4\n":    "6:4",
		"a: 1\nb:\n  c:\n  - d: 1\n  - e: 2\n    - f: 3\ng: 4\n": "6:5",
		"a: 1\nb: \"x\nc: 3\n":                                   "2:1",
		"x: {a: b: c}\n":                                         "1:1",
		"a: 1\n---\na: 1\nb: [1, 2\n---\nc: 1\n":                 "4:1",
	} {
		t.Run(text, func(t *testing.T) {
			_, problems := manifest.Parse("a.yaml", []byte(text), manifest.Limits{})
			wantProblems(t, problems, want+" SYNTAX")
		})
	}
}
