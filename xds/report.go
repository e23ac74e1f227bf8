package xds

import (
	"errors"
	"io"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
)

// proxy is the stream as the fleet shows it.
func (st *stream) proxy() fleet.Proxy {
	n := st.node
	p := fleet.Proxy{
		NodeID: n.ID, Type: string(n.Type), RouterMode: string(n.RouterMode), Cluster: n.Cluster, Network: n.Network,
		Locality: n.Locality, Addresses: n.Addresses, Namespace: n.Namespace, Workload: n.Workload(), Labels: n.Labels, Version: n.Version,
		UserAgent: n.UserAgent, HTTPProxyPort: n.HTTPProxyPort, DNSCapture: n.DNSCapture,
		Protocol: protocolOf(st.delta), ConnectedAt: time.Now(), Sync: map[string]fleet.Sync{},
	}
	for _, kind := range pushOrder {
		p.Sync[string(kind)] = fleet.Sync{State: fleet.NotRequested, Since: p.ConnectedAt}
	}
	return p
}

func protocolOf(delta bool) fleet.Protocol {
	if delta {
		return fleet.Delta
	}
	return fleet.SotW
}

// enlist makes the stream one that is served, until the returned function is
// called.
func (s *Server) enlist(st *stream) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, st)
	}
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
	st.server.views.Forget(&st.node)
	if st.session != nil {
		st.session.close()
	}
	if st.variant != nil {
		st.account.settle(*st.variant)
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
