package graph

import (
	"context"

	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Authority signs certificates of workloads. Show must not block.
type Authority interface {
	Show() model.CertificateAuthority
	// Rotate makes a further root. An error is that the hub could not answer; what is
	// wrong with the request is in what it returns.
	Rotate(ctx context.Context, force bool, author string) ([]apply.Error, error)
}

type noAuthority struct{}

func (noAuthority) Show() model.CertificateAuthority {
	return model.CertificateAuthority{Source: model.SignerSourceNone, Signers: []model.Signer{}, Bundles: []model.TrustBundle{}}
}

func (noAuthority) Rotate(context.Context, bool, string) ([]apply.Error, error) {
	return nil, transport.Errorf(transport.Unavailable, "this hub has no certificate authority")
}

// CertificateAuthority returns who signs certificates, and which roots the hub trusts.
func (q query) CertificateAuthority(context.Context) (model.CertificateAuthority, error) {
	return q.Authority.Show(), nil
}

// RotateCertificateAuthority makes a further root.
func (m mutation) RotateCertificateAuthority(ctx context.Context,
	in model.RotateCertificateAuthorityInput,
) (model.RotateCertificateAuthorityPayload, error) {
	errs, err := m.Authority.Rotate(ctx, value(in.Force), m.author(ctx))
	now := m.Authority.Show()
	return model.RotateCertificateAuthorityPayload{CertificateAuthority: &now, UserErrors: model.UserErrors(errs)}, shown(err)
}
