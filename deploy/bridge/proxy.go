package bridge

import (
	"net/netip"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/bootstrap"
)

// startProxies starts every proxy of a site. None is live when it returns.
func (w *Topology) startProxies(t testing.TB, s *Site) {
	t.Helper()
	for _, g := range s.Gateways {
		w.start(t, s, &g.Pod, bootstrap.SNIDNAT)
	}
	for _, pod := range []*Pod{s.Workload, s.Caller} {
		pod.Capture(testbed.ProxyUID) // before the sidecar has connections
		w.start(t, s, pod, bootstrap.Sidecar)
	}
}

// The files of a proxy, in its folder.
const (
	hubRoots    = "hub-ca.pem"
	certificate = "cert.pem"
	certKey     = "key.pem"
)

func (w *Topology) start(t testing.TB, s *Site, p *Pod, kind bootstrap.Kind) {
	t.Helper()
	chain, key := w.certify(t, s, p)
	p.Envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: p.Name + "-" + s.Cluster, Namespace: p.Namespace, Config: w.bootstrap(t, s, p, kind),
		Files: map[string][]byte{hubRoots: w.Hub.CA, certificate: chain, certKey: key},
	})
}

func (w *Topology) bootstrap(t testing.TB, s *Site, p *Pod, kind bootstrap.Kind) []byte {
	t.Helper()
	hub := netip.MustParseAddrPort(w.Hub.XDS)
	file := func(name string) string { return testbed.DirPlaceholder + "/" + name }
	o := bootstrap.Options{
		Kind: kind, Name: p.Name, Namespace: p.namespace, ServiceAccount: p.Account, Cluster: s.Cluster, Network: s.Network,
		Labels: map[string]string{"app": p.Account},
		Hub:    bootstrap.Endpoint{Host: hub.Addr().String(), Port: hub.Port()},
		HubCA:  file(hubRoots), Certificate: file(certificate), Key: file(certKey),
	}
	if kind == bootstrap.SNIDNAT {
		o.Labels = map[string]string{"istio": "eastwestgateway"}
	}
	for _, address := range p.Addresses {
		o.Addresses = append(o.Addresses, netip.MustParseAddr(address))
	}
	made, err := bootstrap.Build(o)
	if err == nil {
		var text []byte
		text, err = bootstrap.YAML(made)
		if err == nil {
			return text
		}
	}
	t.Fatal(err)
	return nil
}
