package manifest

import (
	"bytes"
	"unicode/utf8"
)

// chunk is what lies between two document markers. Lines keep their columns.
type chunk struct {
	text []byte
	line int // of its first byte in the file, from 1
}

// spot is a place in a file, from 1.
type spot struct{ line, column int }

// spotOf finds the place of an offset; columns count characters.
func spotOf(data []byte, offset int) spot {
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return spot{bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1}
}

func (c chunk) spot(offset int) spot {
	s := spotOf(c.text, offset)
	s.line += c.line - 1
	return s
}

var byteOrderMark = []byte("\uFEFF")

// split cuts a file at its document markers, which mean the same everywhere in
// YAML, so that a broken document does not hide those after it.
func split(data []byte) []chunk {
	data = bytes.TrimPrefix(data, byteOrderMark)
	var chunks []chunk
	start, first := 0, 1
	line := 1
	var blank []byte // the marker that begins the current chunk
	cut := func(end int) {
		text := data[start:end]
		if len(blank) > 0 {
			text = append(bytes.Repeat([]byte{' '}, len(blank)), text[len(blank):]...)
		}
		chunks = append(chunks, chunk{text: text, line: first})
	}
	for i := 0; i < len(data); line++ {
		end := bytes.IndexByte(data[i:], '\n') + 1
		if end == 0 {
			end = len(data) - i
		}
		if isMarker(data[i : i+end]) {
			cut(i)
			start, first, blank = i, line, data[i:i+3]
		}
		i += end
	}
	cut(len(data))
	return chunks
}

func isMarker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0
}

// significant returns the offset of the first byte that is neither blank nor in
// a comment, or -1.
func significant(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
		case '#':
			end := bytes.IndexByte(text[i:], '\n')
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

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// separators estimates from above how many values a text can hold.
func separators(data []byte) int {
	n := 0
	for i, b := range data {
		switch b {
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
