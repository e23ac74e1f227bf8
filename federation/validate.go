package federation

import (
	"fmt"
	"strings"
)

// problemWith returns why a shard's service cannot be used at all, or nil. It
// is checked by Next for every registry alike; the service is then excluded and
// the problem shown at its cluster.
func problemWith(key ServiceKey, shard *Shard) *Problem {
	object := "Service " + key.String()
	if why := hostnameFault(key.Hostname); why != "" {
		return &Problem{
			Code: "INVALID_HOSTNAME", Object: object, Field: "hostname",
			Message: fmt.Sprintf("hostname %q %s; rename the service", key.Hostname, why),
		}
	}
	seen := map[Port]bool{}
	for i, p := range shard.Ports {
		field := fmt.Sprintf("ports[%d]", i)
		at := Port{Number: p.Number, Protocol: Protocol(p.Protocol.Transport())}
		switch {
		case p.Number == 0:
			return &Problem{Code: "INVALID_PORT", Object: object, Field: field + ".number", Message: "port number is 0; use 1 to 65535"}
		case p.Name == "" && len(shard.Ports) > 1:
			return &Problem{
				Code: "UNNAMED_PORT", Object: object, Field: field + ".name",
				Message: fmt.Sprintf("port %d has no name; a service with more than one port must name each of them", p.Number),
			}
		case seen[at]:
			return &Problem{
				Code: "DUPLICATE_PORT", Object: object, Field: field + ".number",
				Message: fmt.Sprintf("port %d is declared twice for %s", p.Number, at.Protocol),
			}
		case p.Name != "" && seen[Port{Name: p.Name}]:
			return &Problem{Code: "DUPLICATE_PORT", Object: object, Field: field + ".name", Message: fmt.Sprintf("two ports are named %q", p.Name)}
		}
		seen[at] = true
		seen[Port{Name: p.Name}] = p.Name != ""
	}
	return nil
}

// Usable reports whether a service may have the name. Next excludes one that may
// not, with a problem.
func (h Hostname) Usable() bool { return hostnameFault(h) == "" }

func hostnameFault(h Hostname) string {
	name := strings.TrimPrefix(string(h), "*.")
	switch {
	case name == "":
		return "is empty"
	case len(name) > 253:
		return "is longer than 253 characters"
	case strings.ToLower(name) != name:
		return "has upper-case letters"
	case strings.HasSuffix(name, "."):
		return "ends with a dot"
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "has a label that is empty or longer than 63 characters"
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return fmt.Sprintf("has the character %q", rune(c))
			}
		}
	}
	return ""
}
