package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

// decode keeps numbers as they were written.
func decode(written json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// checkJSON says why data is not one JSON value that means the same to every
// reader: UTF-8 without lone surrogates, no member named twice in an object. It has
// at most so many values: in memory each is many times as large as it may be in text.
// Errors repeat nothing of the input.
func checkJSON(data []byte, values int) error {
	if !utf8.Valid(data) || loneSurrogate(data) {
		return errEncoding
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := checkValue(decoder, maxNesting, &values); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errNotJSON
	}
	return nil
}

func checkValue(decoder *json.Decoder, levels int, values *int) error {
	if *values--; *values < 0 {
		return errValues
	}
	token, err := decoder.Token()
	if err != nil {
		return errNotJSON
	}
	opening, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if levels == 0 {
		return errNesting
	}
	var seen map[string]struct{}
	if opening == '{' {
		seen = make(map[string]struct{})
	}
	for decoder.More() {
		if opening == '{' {
			if err := checkName(decoder, seen); err != nil {
				return err
			}
		}
		if err := checkValue(decoder, levels-1, values); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return errNotJSON
	}
	return nil
}

func checkName(decoder *json.Decoder, seen map[string]struct{}) error {
	token, err := decoder.Token()
	name, ok := token.(string)
	if err != nil || !ok {
		return errNotJSON
	}
	if _, twice := seen[name]; twice {
		return errDuplicate
	}
	seen[name] = struct{}{}
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
