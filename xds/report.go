package xds

import (
	"errors"
	"io"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// proxyOf is a stream of the node as the fleet shows it. The node is not changed any more.
func proxyOf(n *envoy.Node, delta bool) fleet.Proxy {
	p := fleet.Proxy{
		Node: n, NodeID: n.ID, Type: string(n.Type), RouterMode: string(n.RouterMode), Cluster: n.Cluster, Network: n.Network,
		Locality: n.Locality, Addresses: n.Addresses, Namespace: n.Namespace, Workload: n.Workload(), Labels: n.Labels, Version: n.Version,
		UserAgent: n.UserAgent, MeshVersion: n.MeshVersion, HTTPProxyPort: n.HTTPProxyPort, DNSCapture: n.DNSCapture,
		Protocol: protocolOf(delta), ConnectedAt: time.Now(), Sync: map[string]fleet.Sync{},
	}
	for _, kind := range pushOrder {
		if n.Asks(kind) {
			p.Sync[string(kind)] = fleet.Sync{State: fleet.NotRequested, Since: p.ConnectedAt}
		}
	}
	return p
}

func protocolOf(delta bool) fleet.Protocol {
	if delta {
		return fleet.Delta
	}
	return fleet.SotW
}

// close gives back what the stream held.
func (st *stream) close() {
	for _, keys := range st.held {
		for _, key := range keys {
			st.server.release(key)
		}
	}
	if st.secrets != nil {
		st.secrets.close()
	}
	if st.roots != nil {
		st.roots.close()
	}
	st.registered.leave()
	st.server.views.Forget(&st.client.node)
	if st.state != nil {
		st.state.close()
	}
	if st.variant != nil {
		st.client.account.release(*st.variant)
	}
	if st.report != nil {
		st.report.Close()
	}
}

// clean is the end of a stream: a client that closes it made no error.
func clean(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
