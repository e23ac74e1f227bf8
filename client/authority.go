package client

import "context"

// AuthorityOutcome is the result of a rotation of the certificate authority. With
// UserErrors nothing was changed.
type AuthorityOutcome struct {
	Authority  *AuthoritySummary
	UserErrors []UserError
}

// CertificateAuthority returns who signs certificates, and which roots the hub trusts.
func (c *Client) CertificateAuthority(ctx context.Context) (AuthoritySummary, error) {
	answer, err := CertificateAuthority(ctx, c)
	if err != nil {
		return AuthoritySummary{}, err
	}
	return answer.CertificateAuthority, nil
}

// RotateCertificateAuthority makes a further root; force: also where the key of one
// cannot be opened.
func (c *Client) RotateCertificateAuthority(ctx context.Context, force bool) (AuthorityOutcome, error) {
	answer, err := RotateCertificateAuthority(ctx, c, RotateCertificateAuthorityInput{Force: &force})
	if err != nil {
		return AuthorityOutcome{}, err
	}
	return AuthorityOutcome{answer.RotateCertificateAuthority.CertificateAuthority, answer.RotateCertificateAuthority.UserErrors}, nil
}
