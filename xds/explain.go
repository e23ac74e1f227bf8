package xds

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// Explain says for each endpoint of a hostname whether a connected proxy sends to
// it, and why; false where no such proxy is connected. The proxy is named by its
// node ID, or by the third part of it where that is one node's alone.
func (s *Server) Explain(from *federation.Snapshot, proxy string, host federation.Hostname, port uint16) ([]federation.Explanation, bool) {
	var found *envoy.Node
	for _, n := range s.nodes() {
		switch {
		case n.ID == proxy:
			return envoy.Explain(n, host, port, from), true
		case n.Name != proxy:
		case found != nil && found.ID != n.ID:
			return nil, false
		default:
			found = &n
		}
	}
	if found == nil {
		return nil, false
	}
	return envoy.Explain(*found, host, port, from), true
}
