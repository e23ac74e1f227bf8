package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// Between proxies of the mesh a connection asks for the service port, or the
// subset of one, that it is for: outbound_.PORT_.SUBSET_.HOST, in lower case,
// since Envoy reads it so. A router in sni-dnat mode has a cluster of that name.

// MaxServerName is what TLS takes, in bytes.
const MaxServerName = 255

const serverNamePrefix = "outbound_."

// Shortened is the end of the host in shortened names; no host ends
// so (RFC 2606).
const Shortened = ".invalid"

// ServerName is the name for a subset of a service port; the empty subset is all
// of it. Names that would be too long, or could be read in two ways, are replaced
// by a digest.
func ServerName(host federation.Hostname, port uint16, subset string) string {
	name := strings.ToLower(plainServerName(host, port, subset))
	if len(name) <= MaxServerName && !strings.Contains(subset, "_") && !strings.Contains(string(host), "_.") {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return plainServerName(federation.Hostname("x-"+hex.EncodeToString(sum[:16])+Shortened), port, "")
}

func plainServerName(host federation.Hostname, port uint16, subset string) string {
	return fmt.Sprintf("%s%d_.%s_.%s", serverNamePrefix, port, subset, host)
}

// ParseServerName reads a name; the subset is in lower case.
func ParseServerName(name string) (id ClusterID, ok bool) {
	rest, outbound := strings.CutPrefix(name, serverNamePrefix)
	number, rest, _ := strings.Cut(rest, "_.")
	subset, host, parted := strings.Cut(rest, "_.")
	port, isPort := ParsePort(number)
	if !outbound || !parted || !isPort || host == "" || strings.Contains(host, "_.") || name != strings.ToLower(name) {
		return ClusterID{}, false
	}
	return ClusterID{federation.Hostname(host), port, subset}, true
}

// MayBeShortened reports whether some subset of the host has a shortened name.
func MayBeShortened(host federation.Hostname) bool {
	return len(plainServerName(host, 65535, strings.Repeat("x", maxSubset))) > MaxServerName || strings.Contains(string(host), "_.")
}

// maxSubset is the longest name of a subset that is a label, in bytes.
const maxSubset = 63
