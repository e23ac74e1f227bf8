package graph

import (
	"context"
	"slices"
	"sync"

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
func (q query) CertificateAuthority(ctx context.Context) (model.CertificateAuthority, error) {
	return shownAuthority(ctx, q.resolver), nil
}

// shownAuthority returns the authority, with the clusters that its roots name.
func shownAuthority(ctx context.Context, r *resolver) model.CertificateAuthority {
	named := clustersOf[model.TrustRoot]{r, func(of *model.TrustRoot) []string { return of.ClusterIDs }}
	now := r.Authority.Show()
	now.Bundles = slices.Clone(now.Bundles)
	for i := range now.Bundles {
		now.Bundles[i].Roots = slices.Clone(now.Bundles[i].Roots)
		for j := range now.Bundles[i].Roots {
			of := &now.Bundles[i].Roots[j]
			of.Clusters = named.attached(ctx, of)
		}
	}
	return now
}

// RotateCertificateAuthority makes a further root.
func (m mutation) RotateCertificateAuthority(ctx context.Context,
	in model.RotateCertificateAuthorityInput,
) (model.RotateCertificateAuthorityPayload, error) {
	errs, err := m.Authority.Rotate(ctx, value(in.Force), m.author(ctx))
	now := shownAuthority(ctx, m.resolver)
	return model.RotateCertificateAuthorityPayload{CertificateAuthority: &now, UserErrors: model.UserErrors(errs)}, shown(err)
}

// namedRoots are the trusted roots by the clusters that they name: read once in an operation, when a field first asks, however many
// clusters then ask.
type namedRoots struct {
	once sync.Once
	of   map[string][]model.TrustRoot
}

func (n *namedRoots) read(of model.CertificateAuthority) {
	n.of = map[string][]model.TrustRoot{}
	for _, bundle := range of.Bundles {
		for _, root := range bundle.Roots {
			for _, id := range root.ClusterIDs {
				n.of[id] = append(n.of[id], root)
			}
		}
	}
}

// TrustRoots are the roots that name the cluster.
func (r clusterResolver) TrustRoots(ctx context.Context, of *model.Cluster) ([]model.TrustRoot, error) {
	roots := seen(ctx).roots
	roots.once.Do(func() { roots.read(shownAuthority(ctx, r.resolver)) })
	return append([]model.TrustRoot{}, roots.of[of.ClusterID()]...), nil
}
