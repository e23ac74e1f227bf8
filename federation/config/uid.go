package config

import (
	"crypto/sha256"
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// UIDOf is the UID of an object of a source that has none of its own: the same on every hub and after every
// start. It is a UUID of RFC 9562, version 8.
func UIDOf(source string, key federation.ObjectKey) string {
	b := sha256.Sum256([]byte("isthmus.dev/" + source + "\x00" + key.String()))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
