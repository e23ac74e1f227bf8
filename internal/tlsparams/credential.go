package tlsparams

import "strings"

// SecretScheme may stand before the name of a Secret.
const SecretScheme = "kubernetes://"

// AuthoritySuffix ends the name of the Secret that has the authorities of a credential apart
// from its certificate.
const AuthoritySuffix = "-cacert"

const maxCredential = 253 // bytes

// Credential is the name of a Secret without its scheme; false: it cannot be one.
func Credential(given string) (name string, ok bool) {
	name = strings.TrimPrefix(given, SecretScheme)
	return name, IsCredential(name)
}

// IsCredential reports whether the name may be that of a Secret: no path, no scheme,
// not the name for the authorities of another.
func IsCredential(name string) bool {
	if name == "" || len(name) > maxCredential || strings.HasSuffix(name, AuthoritySuffix) || strings.HasPrefix(name, ".") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	})
}
