package model

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const (
	nul       = "\x00"
	maxCursor = 4096
	sumSize   = 4
)

var encoding = base64.RawURLEncoding.Strict()

// decode takes the one text that a sequence of bytes has; the decoder itself
// passes over line ends.
func decode(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	data, err := encoding.DecodeString(text)
	return data, err == nil
}

// Cursor names a place in one list. It stays valid while the list changes: what
// comes after it is what has a larger key. A sum tells cursors that were cut
// or made up from real ones; it is not secret, since a cursor opens nothing.
func Cursor(list, key string) string {
	return encoding.EncodeToString(append(sum(list, key), key...))
}

// CursorKey returns the key of a cursor of that list.
func CursorKey(list, cursor string) (key string, ok bool) {
	if len(cursor) > maxCursor {
		return "", false
	}
	text, ok := decode(cursor)
	if !ok || len(text) <= sumSize {
		return "", false
	}
	key = string(text[sumSize:])
	return key, string(sum(list, key)) == string(text[:sumSize])
}

func sum(list, key string) []byte {
	whole := sha256.Sum256([]byte(list + nul + key))
	return whole[:sumSize]
}

// Kinds of the objects that have an ID.
const (
	KindCluster = "Cluster"
	KindService = "Service"
	KindProxy   = "Proxy"
	KindNetwork = "Network"

	KindGateway      = "NetworkGateway"
	KindEndpoint     = "Endpoint"
	KindConfigObject = "ConfigObject"
	KindRevision     = "ConfigRevision"
)

// ID makes the opaque ID of an object from what names it.
func ID(kind, name string) string { return encoding.EncodeToString([]byte(kind + nul + name)) }

// ParseID returns what ID was made from.
func ParseID(id string) (kind, name string, ok bool) {
	text, ok := decode(id)
	if !ok {
		return "", "", false
	}
	return strings.Cut(string(text), nul)
}
