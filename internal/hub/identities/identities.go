// Package identities joins who signs certificates, who is trusted, and how callers prove
// who they are.
package identities

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

	"isthmus.dev/isthmus/federation"
	callers "isthmus.dev/isthmus/internal/access"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/internal/identity/csr"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/internal/seal"
)

// Identities are the certificate authority and what authenticates callers.
type Identities struct {
	authority *authority.Authority // nil: the hub signs nothing
	secret    *authority.Secret    // of the cluster caSecret.cluster; nil: none
	home      federation.ClusterID // of the secret
	Trust     *authority.Trust
	tokens    *callers.Tokens
	leaves    *callers.Leaves
	Guard     *callers.Guard
	Proven    func(net.Addr) // called with the xDS address of each caller that may have streams
	metrics   *metrics.Identity
	logger    *slog.Logger

	denied              *callers.Denied
	source, trustDomain string // as the settings say
}

// Options are what identities are made of.
type Options struct {
	Settings Settings
	Hub      federation.ClusterID
	// TokenCluster made the tokens of callers that name no cluster; empty: there is none.
	TokenCluster federation.ClusterID
	Store        authority.Store
	Keys         *seal.Keys
	Snapshots    *federation.Aggregate
	Metrics      *metrics.Identity
	Proven       func(net.Addr) // called with the address of each caller that may have streams
	Logger       *slog.Logger
}

// Open reads the signer, the roots and the list of those who are denied.
func Open(ctx context.Context, o Options) (*Identities, error) {
	i := &Identities{Proven: o.Proven, metrics: o.Metrics, logger: o.Logger, source: o.Settings.CA, trustDomain: o.Settings.TrustDomain}
	var err error
	if o.Settings.CA != caNone {
		a := authority.Options{TrustDomain: o.Settings.TrustDomain, Policy: o.Settings.policy, Store: o.Store, Keys: o.Keys, Logger: o.Logger}
		a.Stale = func(sealed []byte) bool { id, err := seal.KeyID(sealed); return err == nil && id != o.Keys.Newest() }
		switch o.Settings.CA {
		case caFiles:
			a.Source = authority.Folder(o.Settings.CADir)
		case caSecret:
			i.secret, i.home = authority.NewSecret(o.Settings.CASecret.Namespace, o.Settings.CASecret.Name), o.Settings.CASecret.Cluster
			a.Source, a.Late = i.secret, true
		}
		i.authority, err = authority.Open(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("identity.ca %s: %w", o.Settings.CA, err)
		}
	}
	t := authority.TrustOptions{Authority: i.authority, Logger: o.Logger}
	for _, b := range o.Settings.Bundles {
		t.Files = append(t.Files, authority.BundleFile(b))
	}
	i.Trust, err = authority.OpenTrust(t)
	if err != nil {
		return nil, fmt.Errorf("identity.bundles: %w", err)
	}
	i.denied, err = callers.OpenDenied(o.Settings.DenyFile, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("identity.denyFile: %w", err)
	}
	now := attachedClusters{o.Snapshots}
	i.tokens = callers.NewTokens(callers.TokenOptions{Audiences: o.Settings.Audiences, Clusters: now})
	i.leaves = callers.NewLeaves(i.Trust, now)
	i.Guard = callers.New(callers.Options{
		Certificates: i.leaves, Tokens: i.tokens, Clusters: now, Workloads: now, Hub: o.Hub, TokenCluster: o.TokenCluster,
		Denied: i.denied, Metrics: proofs{o.Metrics}, Proven: o.Proven, Logger: o.Logger,
	})
	return i, nil
}

// Attach lets the cluster be asked for what concerns identities.
func (i *Identities) Attach(id federation.ClusterID, reviewer clients.Interface, cluster *listwatch.Cluster) (detach func()) {
	done := i.tokens.Attach(id, reviewer, cluster)
	if i.secret == nil || id != i.home {
		return done
	}
	let := i.secret.Attach(cluster)
	return func() { let(); done() }
}

// AttachDatacenter lets workloads of the Consul datacenter prove who they are.
func (i *Identities) AttachDatacenter(id federation.ClusterID, d callers.Datacenter, tokens, certificates bool) (detach func()) {
	detach = func() {}
	if tokens {
		detach = i.tokens.AttachDatacenter(id, d)
	}
	if !certificates {
		return detach
	}
	leaves, rest := i.leaves.Attach(id, d), detach
	return func() { leaves(); rest() }
}

// measureEvery is the time between two looks at how the authority is.
const measureEvery = 5 * time.Second

// Run follows store and files until the context ends.
func (i *Identities) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return i.Trust.Run(ctx) })
	group.Go(func() error { return i.denied.Run(ctx) })
	if i.authority != nil {
		group.Go(func() error { return i.authority.Run(ctx) })
		group.Go(func() error { i.measure(ctx); return nil })
	}
	return group.Wait()
}

func (i *Identities) measure(ctx context.Context) {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		s := i.authority.Status()
		i.metrics.Authority(metrics.Authority{Roots: s.Roots, SignerEnds: s.Ends, RootEnds: s.RootEnds, Trouble: s.Trouble != nil})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sign is part of identity.Issuer: it counts what SDS asks for.
func (i *Identities) Sign(o authority.Order) (authority.Leaf, error) {
	leaf, err := i.sign(o)
	if err != nil {
		i.metrics.Certificate("sds", string(csr.Failed))
		return leaf, err
	}
	i.metrics.Certificate("sds", string(csr.Signed))
	return leaf, nil
}

var errSignsNothing = errors.New("this hub signs no certificates (identity.ca: none)")

func (i *Identities) sign(o authority.Order) (authority.Leaf, error) {
	if i.authority == nil {
		return authority.Leaf{}, errSignsNothing
	}
	return i.authority.Sign(o)
}

// Service is Istio's certificate service; nil where the hub signs nothing.
func (i *Identities) Service(logger *slog.Logger) *csr.Service {
	if i.authority == nil {
		return nil
	}
	return csr.New(csr.Options{Callers: i.Guard, Signer: i.authority, Roots: i.Trust, Metrics: requests{i.metrics}, Logger: logger})
}

// TLS lets clients without a certificate in: they show a token. A certificate
// must be one of the mesh.
func (i *Identities) TLS(base *tls.Config) *tls.Config {
	return eachHandshake(base, func(c *tls.Config) {
		roots := i.Trust.Pool()
		for _, root := range i.leaves.Roots() {
			roots.AddCert(root)
		}
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, roots
	})
}

// attachedClusters tells access how clusters are attached and who lives where.
type attachedClusters struct{ snapshots *federation.Aggregate }

// Named is part of callers.Clusters.
func (w attachedClusters) Named(name federation.ClusterID) federation.ClusterID {
	return w.snapshots.Latest().ClusterNamed(name)
}

// AttachState is part of callers.Clusters.
func (w attachedClusters) AttachState(id federation.ClusterID) callers.AttachState {
	snapshot := w.snapshots.Latest()
	s := callers.AttachState{TrustDomain: snapshot.Read().TrustDomain(id)}
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
func (w attachedClusters) AccountsAt(cluster federation.ClusterID, address netip.Addr) []string {
	var accounts []string
	for _, found := range federation.WorkloadsAnywhere(w.snapshots.Latest(), cluster, address) {
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
