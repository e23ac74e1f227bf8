package identities

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// RefuseMeshRoots keeps workloads from being operators: what a root of the mesh
// signs is a workload's, so no such root may sign the clients of GraphQL.
func (i *Identities) RefuseMeshRoots(clients []*x509.Certificate) error {
	for _, c := range clients {
		if i.isMeshRoot(c) {
			return fmt.Errorf("--tls-client-ca: %q is a root of the mesh too (identity.ca or identity.bundles), so that every workload could change the hub: "+
				"use a CA that signs operators only", c.Subject)
		}
	}
	return nil
}

// isMeshRoot reports whether the certificate, or another one for its key, verifies workloads.
func (i *Identities) isMeshRoot(c *x509.Certificate) bool {
	same := func(root *x509.Certificate) bool {
		return bytes.Equal(root.RawSubjectPublicKeyInfo, c.RawSubjectPublicKeyInfo)
	}
	return i.Trust.Has(c) || slices.ContainsFunc(i.leaves.Roots(), same)
}

var errMeshRoot = errors.New("the client's certificate leads to a root of the mesh: use one of a CA for operators only")

// RefuseOperator returns why a verified client is not an operator: its certificate leads to a root of the mesh.
func (i *Identities) RefuseOperator(s tls.ConnectionState) error {
	for _, chain := range s.VerifiedChains {
		for _, c := range chain {
			if i.isMeshRoot(c) {
				return errMeshRoot
			}
		}
	}
	return nil
}

// Operators is the TLS configuration of GraphQL. Roots of the mesh may be added
// while the hub runs: a client whose certificate leads to one is refused then.
func (i *Identities) Operators(base *tls.Config) *tls.Config {
	return eachHandshake(base, func(c *tls.Config) { c.VerifyConnection = i.RefuseOperator })
}

// eachHandshake is the base with a change that is made again for each handshake,
// since what the base itself holds may change between two; nil for nil.
func eachHandshake(base *tls.Config, change func(*tls.Config)) *tls.Config {
	if base == nil {
		return nil
	}
	out := base.Clone()
	change(out)
	out.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		current, err := base.GetConfigForClient(hello)
		if err != nil {
			return nil, err
		}
		current = current.Clone()
		change(current)
		return current, nil
	}
	return out
}
