package config

import (
	"bytes"
	"errors"
)

// errNUL keeps keys apart, whose parts NUL ends.
var errNUL = errors.New("a text of it has a NUL character")

// hasNUL reports whether a text or key of JSON has a NUL character, which JSON can
// only escape.
func hasNUL(manifest []byte) bool {
	escape := []byte(`\u0000`)
	for rest := manifest; ; {
		at := bytes.Index(rest, escape)
		if at < 0 {
			return false
		}
		before := rest[:at]
		if (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0 {
			return true
		}
		rest = rest[at+len(escape):]
	}
}
