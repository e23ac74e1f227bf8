package envoy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// Between proxies of the mesh a connection asks for the service port, or the
// subset of one, that it is for: outbound_.PORT_.SUBSET_.HOST, in lower case,
// since Envoy reads it so. A router in sni-dnat mode has a cluster of that name.

// maxServerName is what TLS takes, in bytes.
const maxServerName = 255

const serverNamePrefix = "outbound_."

// shortened is the end of the host in names that stand for others; no host ends
// so (RFC 2606).
const shortened = ".invalid"

// serverName is the name for a subset of a service port; the empty subset is all
// of it. Names that would be too long, or could be read in two ways, are replaced
// by a digest.
func serverName(host federation.Hostname, port uint16, subset string) string {
	name := strings.ToLower(plainServerName(host, port, subset))
	if len(name) <= maxServerName && !strings.Contains(subset, "_") && !strings.Contains(string(host), "_.") {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return plainServerName(federation.Hostname("x-"+hex.EncodeToString(sum[:16])+shortened), port, "")
}

func plainServerName(host federation.Hostname, port uint16, subset string) string {
	return fmt.Sprintf("%s%d_.%s_.%s", serverNamePrefix, port, subset, host)
}

// parseServerName reads a name; the subset is in lower case.
func parseServerName(name string) (id clusterID, ok bool) {
	rest, outbound := strings.CutPrefix(name, serverNamePrefix)
	number, rest, _ := strings.Cut(rest, "_.")
	subset, host, parted := strings.Cut(rest, "_.")
	port, isPort := parsePort(number)
	if !outbound || !parted || !isPort || host == "" || strings.Contains(host, "_.") || name != strings.ToLower(name) {
		return clusterID{}, false
	}
	return clusterID{federation.Hostname(host), port, subset}, true
}

// mayBeShortened tells that some subset of the host has a name that stands for
// its own.
func mayBeShortened(host federation.Hostname) bool {
	return len(plainServerName(host, 65535, strings.Repeat("x", maxSubset))) > maxServerName || strings.Contains(string(host), "_.")
}

// maxSubset is the longest name of a subset that is a label, in bytes.
const maxSubset = 63

// serverNameOf is the name that stands for the destination alone; taken tells
// whose it is where another comes first. The subsets are those of the service.
func (b *builder) serverNameOf(d destination, subsets []*networking.Subset) (name, taken string) {
	host := d.service.Key.Hostname
	name = serverName(host, d.port.Number, d.subset)
	if id, _ := parseServerName(name); id.host != host {
		for _, s := range b.reader.ByHostname(id.host) {
			if _, has := tcpPort(s, id.port); has {
				return name, "the service " + s.Key.String()
			}
		}
	}
	for _, subset := range subsets {
		if subset.GetName() == d.subset {
			break
		}
		if strings.EqualFold(subset.GetName(), d.subset) {
			return name, fmt.Sprintf("the subset %q", subset.GetName())
		}
	}
	return name, ""
}

// sniConflict says that the destination has no name of its own.
func (d destination) sniConflict(name, taken string) Reason {
	return Reason{Code: ReasonSNIConflict, Message: fmt.Sprintf("%s: connections to it would ask for %s, as those to %s do, which comes first; give one of them another name; until then nothing is sent to the former", d.title(), name, taken)}
}
