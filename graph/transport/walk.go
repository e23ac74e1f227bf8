package transport

import (
	"bytes"
	"encoding/json"
)

// walk goes over JSON in place. A json.Decoder copies all of it twice over, and makes a string
// of each text, which for a large apply is several times the request at once (R63). It finds
// out about members and nesting only; json.Valid says whether the rest is right.
type walk struct{ rest []byte }

// next skips blanks and returns the byte that follows; 0 at the end.
func (w *walk) next() byte {
	w.rest = bytes.TrimLeft(w.rest, " \t\r\n")
	if len(w.rest) == 0 {
		return 0
	}
	return w.rest[0]
}

// take skips that byte if it is next.
func (w *walk) take(b byte) bool {
	if w.next() != b {
		return false
	}
	w.rest = w.rest[1:]
	return true
}

// literal accepts a value that is not an object or a list: nothing if there is none.
func (w *walk) literal() []byte {
	end := 0
	if w.next() == '"' {
		end = endOfText(w.rest)
	} else {
		end = bytes.IndexAny(w.rest, ",:]}[{\" \t\r\n")
	}
	if end < 0 {
		end = len(w.rest)
	}
	taken := w.rest[:end]
	w.rest = w.rest[end:]
	return taken
}

// endOfText is behind the closing quote; 0: there is none.
func endOfText(quoted []byte) int {
	for i := 1; i < len(quoted); i++ {
		switch quoted[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

// members calls back at each value of an object or a list whose opening bracket was taken.
// Names are nil in a list.
func (w *walk) members(opening byte, value func(name []byte) error) error {
	closing := byte(']')
	if opening == '{' {
		closing = '}'
	}
	for first := true; !w.take(closing); first = false {
		if !first && !w.take(',') {
			return errNotJSON
		}
		var name []byte
		if opening == '{' {
			name = w.literal()
			if len(name) == 0 || name[0] != '"' || !w.take(':') {
				return errNotJSON
			}
		}
		if err := value(name); err != nil {
			return err
		}
	}
	return nil
}

// build makes a value of valid JSON as a json.Decoder does that keeps numbers as they were
// written.
func (w *walk) build() (any, error) {
	opening := w.next()
	switch {
	case w.take('{'):
		object := map[string]any{}
		return object, w.members(opening, func(name []byte) error {
			key, err := unquoted(name)
			if err == nil {
				object[key], err = w.build()
			}
			return err
		})
	case w.take('['):
		list := []any{}
		err := w.members(opening, func([]byte) error {
			item, err := w.build()
			list = append(list, item)
			return err
		})
		return list, err
	}
	return scalar(w.literal())
}

func unquoted(literal []byte) (s string, err error) {
	err = json.Unmarshal(literal, &s)
	return s, err
}

func scalar(literal []byte) (value any, err error) {
	if len(literal) > 0 && (literal[0] == '-' || literal[0] >= '0' && literal[0] <= '9') {
		return json.Number(literal), nil
	}
	err = json.Unmarshal(literal, &value)
	return value, err
}
