// Package manifest reads YAML and JSON documents strictly: it rejects what two parsers
// could read differently, with the position and with what to write instead. It is pure, and
// Limits bound its work.
package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Limits bound what Parse reads; a zero field means its default.
type Limits struct {
	Bytes     int // of a file; default 16 MiB
	Documents int // of a file, items of lists counted; default 12,000
	Depth     int // of nesting; default 64
	Values    int // of a file, estimated before anything is built; default 2,500,000
	Problems  int // after so many the rest of the file is not looked at; default 1,000
}

// OrDefault fills in the defaults.
func (l Limits) OrDefault() Limits {
	l.Bytes = cmp.Or(l.Bytes, 16<<20)
	l.Documents = cmp.Or(l.Documents, 12_000)
	l.Depth = cmp.Or(l.Depth, 64)
	l.Values = cmp.Or(l.Values, 2_500_000)
	l.Problems = cmp.Or(l.Problems, 1000)
	return l
}

// Document is one object of a file, or one item of a list that the file holds.
type Document struct {
	File  string
	Index int // of the document in its file, from 0; empty documents do not count
	Item  int // of the item in its list, from 0; -1 outside of a list
	Line  int // where it begins
	// Value has map[string]any, []any, string, bool, int64, float64 and nil. It is
	// the caller's.
	Value map[string]any

	place *place
	from  *origin // nil: it cannot be read again
}

// Problem is something in a file that is refused.
type Problem struct {
	File         string
	Document     int // as Document.Index; -1: the whole file
	Line, Column int // from 1; 0: the whole file
	Field        string
	Code         Code
	Message      string // what is wrong and what to write instead
}

func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	if p.Field != "" {
		return fmt.Sprintf("%s: %s: %s [%s]", at, p.Field, p.Message, p.Code)
	}
	return fmt.Sprintf("%s: %s [%s]", at, p.Message, p.Code)
}

// Code names the rule that a problem breaks.
type Code string

// The rules.
const (
	TooLarge         Code = "TOO_LARGE"          // the file, or what it would build
	TooManyDocuments Code = "TOO_MANY_DOCUMENTS" // in one file
	TooManyProblems  Code = "TOO_MANY_PROBLEMS"  // the rest was not looked at
	TooDeep          Code = "TOO_DEEP"           // nesting
	Empty            Code = "EMPTY"              // no object in the file
	NotUTF8          Code = "NOT_UTF8"
	NulByte          Code = "NUL"
	Directive        Code = "DIRECTIVE" // %YAML, %TAG
	Syntax           Code = "SYNTAX"
	Tab              Code = "TAB" // used for indentation
	NotAnObject      Code = "NOT_AN_OBJECT"
	Anchor           Code = "ANCHOR" // &name or *name
	MergeKey         Code = "MERGE_KEY"
	CustomTag        Code = "TAG"
	DuplicateKey     Code = "DUPLICATE_KEY"
	BadKey           Code = "KEY" // a key that is not a string
	Ambiguous        Code = "AMBIGUOUS"
	BadNumber        Code = "NUMBER" // not exact in 64 bits
	Substitution     Code = "SUBSTITUTION"
)

// batch is how many chunks are decoded at once: what comes after too many
// problems is not looked at.
const batch = 256

// Parse returns the documents that can be used and every problem found. With a
// problem nothing of the file should be applied. A file without an object is a
// problem; it never means that there should be none.
func Parse(file string, data []byte, limits Limits) ([]Document, []Problem) {
	var documents []Document
	problems := Each(file, string(data), limits, func(d Document) { documents = append(documents, d) })
	return documents, problems
}

// Each is Parse for a caller that need not hold all documents at once. Released
// documents hold the text itself, not a copy.
func Each(file, data string, limits Limits, use func(Document)) []Problem {
	p := &parser{file: file, limits: limits.OrDefault(), document: -1, use: use}
	if p.refuseWhole(data) {
		return p.problems
	}
	for chunks := range slices.Chunk(split(data), batch) {
		trees := decodeAll(chunks)
		for i, c := range chunks {
			if !p.full() {
				p.parse(c, trees[i])
			}
		}
		if p.full() {
			break
		}
	}
	if p.used == 0 && len(p.problems) == 0 {
		p.document = -1
		p.report(spot{}, "", Empty, "the file holds no object; to remove objects, delete them by name")
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p.problems
}

// parser gathers what comes of one file.
type parser struct {
	file     string
	limits   Limits
	document int // the one being read
	count    int // of documents so far
	use      func(Document)
	used     int // documents
	problems []Problem
}

func (p *parser) report(at spot, field string, code Code, format string, args ...any) {
	if p.full() {
		return
	}
	if len(p.problems) == p.limits.Problems-1 {
		code, format, args = TooManyProblems, "there are %d problems up to here; the rest was not looked at", []any{p.limits.Problems}
	}
	p.problems = append(p.problems, Problem{
		File: p.file, Document: p.document, Line: at.line, Column: at.column, Field: field,
		Code: code, Message: fmt.Sprintf(format, args...),
	})
}

func (p *parser) full() bool { return len(p.problems) >= p.limits.Problems }

// refuseWhole reports what forbids to read the file at all.
func (p *parser) refuseWhole(data string) bool {
	if len(data) > p.limits.Bytes {
		p.report(spot{}, "", TooLarge, "the file has %d bytes, more than the %d allowed: split it", len(data), p.limits.Bytes)
		return true
	}
	if i := strings.IndexByte(data, 0); i >= 0 {
		p.report(spotOf(data, i), "", NulByte, "a NUL byte is not text: write the file as UTF-8")
		return true
	}
	if i := invalidUTF8(data); i >= 0 {
		p.report(spotOf(data, i), "", NotUTF8, "the bytes are not UTF-8: write the file as UTF-8")
		return true
	}
	if n := separators(data); n > p.limits.Values {
		p.report(spot{}, "", TooLarge, "the file has about %d values, more than the %d allowed: split it", n, p.limits.Values)
		return true
	}
	return false
}

// parse reads one chunk between document markers. Of JSON there may be no tree.
func (p *parser) parse(written document, t *tree) {
	c := written.blanked()
	first := significant(c.text)
	if first < 0 {
		return
	}
	at := c.spot(first)
	p.document = p.count
	if c.text[first] == '%' {
		p.count++
		p.report(at, "", Directive, "directives are not read: remove the line")
		return
	}
	if c.text[first] == '{' || c.text[first] == '[' {
		if p.readJSON(c) {
			return
		}
	}
	p.count++
	if t == nil {
		t = decode(c.text)
	}
	if v, ok := p.readYAML(c, t); ok {
		p.add(v, &origin{written, p.limits})
	}
}

// node is a value with the places of its parts.
type node struct {
	value any
	place place
}

// add takes a whole document; lists are taken apart.
func (p *parser) add(n node, from *origin) {
	object, ok := n.value.(map[string]any)
	if !ok {
		p.report(n.place.spot, "", NotAnObject, "the document is %s where an object with apiVersion and kind is expected", describe(n.value))
		return
	}
	p.take(Document{File: p.file, Index: p.document, Item: -1, Line: n.place.line, Value: object, place: &n.place, from: from})
}
