package model

import (
	"encoding/base64"
	"strings"
)

// Cursor names a place in the lists of one kind. It stays valid while the list
// changes: what comes behind it is what has a larger key.
func Cursor(kind, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + "\x00" + key))
}

// CursorKey returns the key of a cursor of that kind.
func CursorKey(kind, cursor string) (key string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(cursor) > 4096 {
		return "", false
	}
	found, key, ok := strings.Cut(string(text), "\x00")
	return key, ok && found == kind && key != ""
}

// Kinds of the objects that have an ID.
const (
	KindCluster = "Cluster"
	KindService = "Service"
	KindProxy   = "Proxy"
)

// ID makes the opaque ID of an object from what names it.
func ID(kind, name string) string { return Cursor(kind, name) }

// ParseID returns what ID was made from.
func ParseID(id string) (kind, name string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(text), "\x00")
}
