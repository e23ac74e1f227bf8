package kubernetes

import (
	"strings"

	"isthmus.dev/isthmus/federation"
)

// record is what every kept object has.
type record struct {
	k        key
	version  string // the API server's; equal versions are equal objects
	problems []federation.Problem
}

func (r *record) base() *record { return r }

// object is something that the registry keeps of an API object.
type object interface {
	base() *record
	size() int64 // about what it takes in memory
}

// labelValue reports whether the text is a valid, non-empty label value.
func labelValue(s string) bool {
	if s == "" || len(s) > 63 || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func dnsLabel(s string) bool {
	return labelValue(s) && s == strings.ToLower(s) && !strings.ContainsAny(s, "._")
}

// dnsName accepts underscores, as resolvers do.
func dnsName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) > 63 || !labelValue(strings.TrimLeft(label, "_")) {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// place reads a part of a locality; what is not a label value is excluded.
func place(text, field string, n *objectProblems) string {
	if text == "" || labelValue(text) {
		return text
	}
	n.Add(codeLocality, field, "%s is not a valid label value (63 letters, digits, '-', '_', '.'); it is excluded from the locality",
		federation.Quote(text))
	return ""
}

// network reads a network label; what is not a label value is excluded.
func network(text, field string, n *objectProblems) federation.NetworkID {
	if text == "" || labelValue(text) {
		return federation.NetworkID(text)
	}
	n.Add(codeNetwork, field, "%s is not a valid label value; the cluster's network is used", federation.Quote(text))
	return ""
}
