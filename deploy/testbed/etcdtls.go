package testbed

import (
	"crypto/tls"
	"fmt"
	"net/netip"
)

// secure makes etcd serve TLS if there is an authority. It returns the
// arguments for that and what a client needs.
func (e *Etcd) secure(authority *Authority, client netip.AddrPort) ([]string, *tls.Config) {
	e.t.Helper()
	if authority == nil {
		return nil, nil
	}
	e.URL = fmt.Sprintf("https://%s", client)
	hosts := []string{"localhost", "127.0.0.1", client.Addr().String()}
	cert, key := authority.Issue(Subject{Name: "etcd", Hosts: hosts})
	return []string{
		"--client-cert-auth",
		"--trusted-ca-file=" + writeFile(e.t, e.dir, "ca.crt", authority.PEM),
		"--cert-file=" + writeFile(e.t, e.dir, "server.crt", cert),
		"--key-file=" + writeFile(e.t, e.dir, "server.key", key),
	}, authority.TLS(Subject{Name: "testbed"})
}
