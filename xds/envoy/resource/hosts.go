package resource

import "strings"

// IsDomain reports whether the name is one of a host, or a wildcard for hosts, that a
// virtual host can have.
func IsDomain(name string) bool {
	return strings.Trim(name, "*.") != "" && !strings.Contains(name[1:], "*") && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == ':' || r == '/' || r == '|'
	})
}

// IsServerName reports whether TLS can ask for the name: a name, or a wildcard for
// the first part of one.
func IsServerName(name string) bool {
	rest := strings.TrimPrefix(name, "*.")
	return rest != "" && !strings.Contains(rest, "*") && IsDomain(name)
}

// Covers reports whether the host is the pattern, or matches its wildcard.
func Covers(pattern, host string) bool {
	if suffix, wild := strings.CutPrefix(pattern, "*"); wild {
		return strings.HasSuffix(host, suffix)
	}
	return pattern == host
}
