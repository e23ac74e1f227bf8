package manifest

import (
	"strings"
	"unicode/utf8"
)

// document is the text between two document markers, a part of the file's text.
type document struct {
	text   string
	line   int // of its first byte in the file, from 1
	marker int // bytes of the marker that begins it
}

// blanked is the chunk with spaces in place of the marker, so that lines keep their columns.
func (c document) blanked() document {
	if c.marker > 0 {
		c.text, c.marker = strings.Repeat(" ", c.marker)+c.text[c.marker:], 0
	}
	return c
}

// spot is a place in a file, from 1.
type spot struct{ line, column int }

// spotOf finds the place of an offset; columns count characters.
func spotOf(text string, offset int) spot {
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return spot{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1}
}

func (c document) spot(offset int) spot {
	s := spotOf(c.text, offset)
	s.line += c.line - 1
	return s
}

const byteOrderMark = "\uFEFF"

// split cuts a file at its document markers, which mean the same everywhere in
// YAML, so that a broken document does not hide those after it.
func split(data string) []document {
	data = strings.TrimPrefix(data, byteOrderMark)
	var chunks []document
	start, line := 0, 1
	next := document{line: 1}
	cut := func(end int) {
		next.text = data[start:end]
		chunks = append(chunks, next)
	}
	for i := 0; i < len(data); line++ {
		end := strings.IndexByte(data[i:], '\n') + 1
		if end == 0 {
			end = len(data) - i
		}
		if isMarker(data[i : i+end]) {
			cut(i)
			start, next = i, document{line: line, marker: len("---")}
		}
		i += end
	}
	cut(len(data))
	return chunks
}

func isMarker(line string) bool {
	if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "...") {
		return false
	}
	return len(line) == 3 || strings.IndexByte(" \t\r\n", line[3]) >= 0
}

// significant returns the offset of the first byte that is neither blank nor in
// a comment, or -1.
func significant(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
		case '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return -1
			}
			i += end
		default:
			return i
		}
	}
	return -1
}

func invalidUTF8(data string) int {
	if utf8.ValidString(data) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRuneInString(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// separators estimates from above how many values a text can hold.
func separators(data string) int {
	n := 0
	for i := range len(data) {
		switch b := data[i]; b {
		case '\n', ',', '[', '{':
			n++
		case ':', '-', '?':
			if i+1 == len(data) || data[i+1] <= ' ' || b == ':' && i > 0 && data[i-1] == '"' {
				n++
			}
		}
	}
	return n
}
