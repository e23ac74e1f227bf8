package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"isthmus.dev/isthmus/federation"
	callers "isthmus.dev/isthmus/internal/access"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/internal/identity/csr"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/internal/seal"
)

// identities is who signs, who is believed, and who is asked.
type identities struct {
	authority *authority.Authority // nil: the hub signs nothing
	secret    *authority.Secret    // of the cluster caSecret.cluster; nil: none
	home      federation.ClusterID // of the secret
	trust     *authority.Trust
	tokens    *callers.Tokens
	guard     *callers.Guard
	proven    func(net.Addr) // is told where on xDS a caller is that may have streams
	metrics   *metrics.Identity
	logger    *slog.Logger

	denied              *callers.Denied
	source, trustDomain string // as the settings say
}

// identityParts are what identities are made of.
type identityParts struct {
	settings  identitySettings
	hub       federation.ClusterID
	store     authority.Store
	keys      *seal.Keys
	snapshots *federation.Aggregate
	metrics   *metrics.Identity
	proven    func(net.Addr)
	logger    *slog.Logger
}

func openIdentities(ctx context.Context, p identityParts) (*identities, error) {
	i := &identities{proven: p.proven, metrics: p.metrics, logger: p.logger, source: p.settings.CA, trustDomain: p.settings.TrustDomain}
	var err error
	if p.settings.CA != caNone {
		o := authority.Options{TrustDomain: p.settings.TrustDomain, Policy: p.settings.policy, Store: p.store, Keys: p.keys, Logger: p.logger}
		o.Stale = func(sealed []byte) bool { id, err := seal.KeyID(sealed); return err == nil && id != p.keys.Newest() }
		switch p.settings.CA {
		case caFiles:
			o.Source = authority.Folder(p.settings.CADir)
		case caSecret:
			i.secret, i.home = authority.NewSecret(p.settings.CASecret.Namespace, p.settings.CASecret.Name), p.settings.CASecret.Cluster
			o.Source, o.Late = i.secret, true
		}
		if i.authority, err = authority.Open(ctx, o); err != nil {
			return nil, fmt.Errorf("identity.ca %s: %w", p.settings.CA, err)
		}
	}
	t := authority.TrustOptions{Authority: i.authority, Logger: p.logger}
	for _, b := range p.settings.Bundles {
		t.Files = append(t.Files, authority.BundleFile(b))
	}
	if i.trust, err = authority.OpenTrust(t); err != nil {
		return nil, fmt.Errorf("identity.bundles: %w", err)
	}
	if i.denied, err = callers.OpenDenied(p.settings.DenyFile, p.logger); err != nil {
		return nil, fmt.Errorf("identity.denyFile: %w", err)
	}
	now := world{p.snapshots}
	i.tokens = callers.NewTokens(callers.TokenOptions{Audiences: p.settings.Audiences, Clusters: now})
	i.guard = callers.New(callers.Options{
		Certificates: i.trust, Tokens: i.tokens, Clusters: now, Workloads: now, Hub: p.hub, Denied: i.denied, Metrics: proofs{p.metrics}, Proven: p.proven, Logger: p.logger,
	})
	return i, nil
}

// attach lets the cluster be asked for what concerns identities.
func (i *identities) attach(id federation.ClusterID, reviewer kubernetes.Interface, cluster *listwatch.Cluster) (detach func()) {
	done := i.tokens.Attach(id, reviewer)
	if i.secret == nil || id != i.home {
		return done
	}
	let := i.secret.Attach(cluster)
	return func() { let(); done() }
}

// measureEvery is the time between two looks at how the authority is.
const measureEvery = 5 * time.Second

// run follows store and files until the context ends.
func (i *identities) run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return i.trust.Run(ctx) })
	group.Go(func() error { return i.denied.Run(ctx) })
	if i.authority != nil {
		group.Go(func() error { return i.authority.Run(ctx) })
		group.Go(func() error { i.measure(ctx); return nil })
	}
	return group.Wait()
}

func (i *identities) measure(ctx context.Context) {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		s := i.authority.Standing()
		i.metrics.Authority(s.Roots, s.Ends, s.Trouble != nil)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sign is part of identity.Issuer: it counts what SDS asks for.
func (i *identities) Sign(o authority.Order) (authority.Leaf, error) {
	leaf, err := i.sign(o)
	if err != nil {
		i.metrics.Certificate("sds", string(csr.Failed))
		return leaf, err
	}
	i.metrics.Certificate("sds", string(csr.Signed))
	return leaf, nil
}

var errSignsNothing = errors.New("this hub signs no certificates (identity.ca is none)")

func (i *identities) sign(o authority.Order) (authority.Leaf, error) {
	if i.authority == nil {
		return authority.Leaf{}, errSignsNothing
	}
	return i.authority.Sign(o)
}

// service is Istio's certificate service; nil where the hub signs nothing.
func (i *identities) service(logger *slog.Logger) *csr.Service {
	if i.authority == nil {
		return nil
	}
	return csr.New(csr.Options{Callers: i.guard, Signer: i.authority, Roots: i.trust, Metrics: requests{i.metrics}, Logger: logger})
}

// tls lets clients without a certificate in: they show a token. A certificate
// must be one of the mesh.
func (i *identities) tls(base *tls.Config) *tls.Config {
	return eachHandshake(base, func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, i.trust.Pool()
	})
}

// world tells access how clusters are attached and who lives where.
type world struct{ snapshots *federation.Aggregate }

// Named is part of callers.Clusters.
func (w world) Named(name federation.ClusterID) federation.ClusterID {
	return w.snapshots.Latest().ClusterNamed(name)
}

// Standing is part of callers.Clusters.
func (w world) Standing(id federation.ClusterID) callers.Standing {
	snapshot := w.snapshots.Latest()
	s := callers.Standing{TrustDomain: snapshot.Read().TrustDomain(id)}
	c, attached := snapshot.Cluster(id)
	if !attached || c.Status.Phase == federation.Detaching {
		return s
	}
	s.Attached, s.UID = true, c.Identity.UID
	if c.Status.Phase == federation.Held || c.Status.Phase == federation.Failed {
		s.Frozen = c.Status.Message
		if s.Frozen == "" {
			s.Frozen = string(c.Status.Phase)
		}
	}
	return s
}

// AccountsAt is part of callers.Workloads.
func (w world) AccountsAt(cluster federation.ClusterID, address netip.Addr) []string {
	var accounts []string
	for _, found := range w.snapshots.Latest().WorkloadsAnywhere(cluster, address) {
		if found.ServiceAccount != "" && !slices.Contains(accounts, found.ServiceAccount) {
			accounts = append(accounts, found.ServiceAccount)
		}
	}
	return accounts
}

// proofs counts what access says.
type proofs struct{ to *metrics.Identity }

// Proof is part of callers.Metrics.
func (p proofs) Proof(by callers.Method, outcome callers.Outcome) {
	p.to.Proof(string(by), string(outcome))
}

// requests counts what the certificate service says.
type requests struct{ to *metrics.Identity }

// Requested is part of csr.Metrics.
func (r requests) Requested(o csr.Outcome) { r.to.Certificate("csr", string(o)) }
