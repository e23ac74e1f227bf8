package clusters

import (
	"context"
	"crypto/x509"
	"errors"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/access"
	"isthmus.dev/isthmus/registries/consul"
)

// Prove is part of consul.Following.
func (f following) Prove(id federation.ClusterID, w *consul.Workloads) (detach func()) {
	return f.Identities.AttachDatacenter(id, &datacenter{w}, w.Tokens, w.Certificates)
}

// datacenter is a Consul datacenter in the words of access.
type datacenter struct{ *consul.Workloads }

// Account is part of access.Datacenter.
func (d *datacenter) Account(ctx context.Context, uid string, token access.Token) (access.Account, error) {
	found, ends, err := d.AccountOf(ctx, uid, string(token))
	var proof *consul.ProofError
	switch {
	case errors.As(err, &proof) && proof.Definite:
		return access.Account{}, access.Refuse(proof.Why)
	case err != nil && proof == nil:
		return access.Account{}, access.NoAnswer("its Consul does not answer") // the error may quote addresses
	}
	return access.Account{Namespace: found.Namespace, Name: found.Name, Ends: ends}, err
}

// Leaf is part of access.Datacenter.
func (d *datacenter) Leaf(uid string, presented []*x509.Certificate) (account access.Account, known bool, err error) {
	found, known, err := d.Workloads.Leaf(uid, presented)
	if !known || err != nil {
		return access.Account{}, known, err
	}
	return access.Account{Namespace: found.Namespace, Name: found.Name, Ends: presented[0].NotAfter}, true, nil
}
