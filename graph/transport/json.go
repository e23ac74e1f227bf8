package transport

import (
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

var (
	errNotJSON   = errors.New("is not valid JSON")
	errEncoding  = errors.New("is not valid UTF-8 text")
	errDuplicate = errors.New("names a member twice")
	errNesting   = errors.New("is nested too deeply")
	errValues    = errors.New("holds too many values")
)

// maxNesting bounds the depth of JSON that a request may bring.
const maxNesting = 64

// checkJSON says why data is not one JSON value that means the same to every
// reader: UTF-8 without lone surrogates, no member named twice in an object. It has
// at most so many values: in memory each is many times as large as it may be in text.
// Errors repeat nothing of the input.
func checkJSON(data []byte, values int) error {
	if !utf8.Valid(data) || loneSurrogate(data) {
		return errEncoding
	}
	w := &walk{data}
	if err := w.check(maxNesting, &values); err != nil {
		return err
	}
	if !json.Valid(data) {
		return errNotJSON
	}
	return nil
}

// check goes over one value.
func (w *walk) check(levels int, values *int) error {
	*values--
	if *values < 0 {
		return errValues
	}
	opening := w.next()
	if opening != '{' && opening != '[' {
		if len(w.literal()) == 0 {
			return errNotJSON
		}
		return nil
	}
	if levels == 0 {
		return errNesting
	}
	w.take(opening)
	seen := map[string]struct{}{}
	return w.members(opening, func(name []byte) error {
		if name != nil {
			if err := checkName(name, seen); err != nil {
				return err
			}
		}
		return w.check(levels-1, values)
	})
}

func checkName(written []byte, seen map[string]struct{}) error {
	name, err := unquoted(written)
	if err != nil {
		return errNotJSON
	}
	if _, twice := seen[name]; twice {
		return errDuplicate
	}
	seen[name] = struct{}{}
	return nil
}

// membersOf are the parts of an object of JSON that was checked; nil if it is none.
func membersOf(checked []byte) map[string]json.RawMessage {
	w := &walk{checked}
	if !w.take('{') {
		return nil
	}
	members := map[string]json.RawMessage{}
	err := w.members('{', func(written []byte) error {
		name, err := unquoted(written)
		if err != nil {
			return err
		}
		w.next()
		from, values := w.rest, len(w.rest)
		err = w.check(maxNesting, &values)
		members[name] = json.RawMessage(from[:len(from)-len(w.rest)])
		return err
	})
	if err != nil {
		return nil // cannot be: it was checked
	}
	return members
}

// decode reads JSON that was checked. Numbers of an object stay as they were written.
func decode(written json.RawMessage, into any) error {
	object, isObject := into.(*map[string]any)
	if !isObject {
		return json.Unmarshal(written, into)
	}
	value, err := (&walk{written}).build()
	if err != nil {
		return err
	}
	is := value == nil
	if value != nil {
		*object, is = value.(map[string]any)
	}
	if !is {
		return errNotJSON
	}
	return nil
}

// loneSurrogate finds half of a UTF-16 pair among the escapes of JSON strings.
func loneSurrogate(data []byte) bool {
	high := false
	for i := 0; i < len(data); i++ {
		code, escaped := escapedCode(data[i:])
		isHigh, isLow := escaped && code>>10 == 0xd800>>10, escaped && code>>10 == 0xdc00>>10
		if high != isLow {
			return true
		}
		high = isHigh
		switch {
		case escaped:
			i += len(`\uXXXX`) - 1
		case data[i] == '\\':
			i++
		}
	}
	return high
}

func escapedCode[T []byte | string](data T) (code uint64, ok bool) {
	if len(data) < len(`\uXXXX`) || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	code, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return code, err == nil
}
