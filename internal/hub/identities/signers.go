package identities

import (
	"context"
	"errors"
	"time"

	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// The codes of rotations that are refused.
const (
	signerFromOutside apply.Code = "SIGNER_FROM_OUTSIDE"
	signerRotating    apply.Code = "SIGNER_ROTATING" // a new root waits already
	signerUnusable    apply.Code = "SIGNER_UNUSABLE" // what is stored cannot be opened
)

// SignsFor is the trust domain for which the hub signs; empty: it signs no certificates.
func (i *Identities) SignsFor() string {
	if i.authority == nil {
		return ""
	}
	return i.trustDomain
}

// Show is part of graph.Authority.
func (i *Identities) Show() model.CertificateAuthority {
	source := map[string]model.SignerSource{
		caOwn: model.SignerSourceOwn, caFiles: model.SignerSourceFiles, caSecret: model.SignerSourceSecret, caNone: model.SignerSourceNone,
	}
	out := model.CertificateAuthority{TrustDomain: i.trustDomain, Source: source[i.source], Signers: []model.Signer{}, Bundles: i.bundles()}
	if i.authority == nil {
		return out
	}
	now := i.authority.Status()
	out.Signs = now.Signer != ""
	if now.Trouble != nil {
		text := now.Trouble.Error()
		out.Message = &text
	}
	for _, s := range i.authority.Signers() {
		out.Signers = append(out.Signers, model.Signer{
			Fingerprint: s.Fingerprint, Subject: s.Subject, State: model.SignerState(s.State),
			TrustedAt: apiTime(s.Trusted), SigningStartsAt: apiTime(s.Signs), ExpiresAt: apiTime(s.Ends),
		})
	}
	return out
}

func (i *Identities) bundles() []model.TrustBundle {
	all := []model.TrustBundle{}
	domains, roots := i.Trust.RootStatuses()
	for _, domain := range domains {
		b := model.TrustBundle{TrustDomain: domain, Roots: []model.TrustRoot{}}
		for _, r := range roots[domain] {
			one := model.TrustRoot{Fingerprint: r.Fingerprint, Subject: r.Subject, ExpiresAt: apiTime(r.Ends), ClusterIDs: []string{}}
			for _, c := range r.Clusters {
				one.ClusterIDs = append(one.ClusterIDs, string(c))
			}
			b.Roots = append(b.Roots, one)
		}
		all = append(all, b)
	}
	return all
}

// apiTime is the time as the API shows it.
func apiTime(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Rotate is part of graph.Authority.
func (i *Identities) Rotate(ctx context.Context, force bool, author string) ([]apply.Error, error) {
	err := errSignsNothing
	if i.authority != nil {
		err = i.authority.Rotate(ctx, force)
	}
	refused := apply.Error{}
	switch {
	case err == nil:
		i.metrics.Rotation("done")
		i.logger.Info("the certificate authority is being rotated", "author", author, "forced", force)
		return nil, nil
	case errors.Is(err, errSignsNothing), errors.Is(err, authority.ErrFromOutside):
		refused.Code = signerFromOutside
	case errors.Is(err, authority.ErrRotating):
		refused.Code = signerRotating
	case errors.Is(err, authority.ErrUnusable):
		refused.Code = signerUnusable
	default:
		i.metrics.Rotation("failed")
		return nil, err
	}
	i.metrics.Rotation("refused")
	refused.Message = err.Error()
	return []apply.Error{refused}, nil
}

// Warnings are what is wrong although the hub serves.
func (i *Identities) Warnings() []string {
	if i.authority == nil {
		return nil
	}
	if s := i.authority.Status(); s.Trouble != nil {
		does := "certificates are signed"
		if s.Signer == "" {
			does = "no certificates are signed"
		}
		return []string{"warning: " + does + ": " + s.Trouble.Error()}
	}
	return nil
}
