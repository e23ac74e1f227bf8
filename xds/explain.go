package xds

import (
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// Explain says which service a connected proxy reaches at a hostname, and for each endpoint
// of it whether the proxy sends to it, and why; false where no such proxy is connected, or
// several are. The proxy is
// named by its node ID or by the third part of it, and by CLUSTER/ before that where
// proxies of several clusters have the same.
func (*Server) Explain(
	of *federation.Snapshot, proxies *fleet.Value, proxy string, host federation.Hostname, port uint16,
) (fleet.Explained, bool) {
	var found *envoy.Node
	for n := range nodes(proxies) {
		switch {
		case !isNamed(n, proxy):
		case found != nil && (found.ID != n.ID || found.Cluster != n.Cluster):
			return fleet.Explained{}, false
		default:
			found = n
		}
	}
	if found == nil {
		return fleet.Explained{}, false
	}
	reached, endpoints := envoy.Explain(*found, host, port, of)
	return fleet.Explained{
		Proxy: fleet.ProxyID{Cluster: found.Cluster, NodeID: found.ID}, Service: reached, Endpoints: endpoints,
	}, true
}

func isNamed(n *envoy.Node, proxy string) bool {
	if inCluster, is := strings.CutPrefix(proxy, string(n.Cluster)+"/"); is {
		proxy = inCluster
	}
	return proxy == n.ID || proxy == n.Name
}
