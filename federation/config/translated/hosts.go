package translated

import "strings"

// AnyHost is the wildcard for all hosts.
const AnyHost = "*"

// Covers reports whether a host is the other, or a wildcard for it.
func Covers(pattern, host string) bool {
	if pattern == AnyHost || pattern == host {
		return true
	}
	suffix, wild := strings.CutPrefix(pattern, "*")
	return wild && strings.HasSuffix(host, suffix)
}
