package access

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/internal/identity/authority"
)

// Certificates tell what a certificate proves; an authority.Trust does.
type Certificates interface {
	Verify(presented []*x509.Certificate) (authority.Proof, error)
}

// Options are what a Guard works with. All but Metrics and Logger are required.
type Options struct {
	Certificates Certificates
	Tokens       *Tokens
	Clusters     Clusters
	Workloads    Workloads
	Hub          federation.ClusterID // the hub's own, which counts as attached
	// TokenCluster made the tokens of callers that name no cluster, as istioctl; empty:
	// such callers are refused.
	TokenCluster federation.ClusterID
	Denied       *Denied        // nil: none are denied
	Metrics      Metrics        // nil: nothing is counted
	Proven       func(net.Addr) // called with the address of each caller that proved who it is; nil: not called. It must not block.
	Logger       *slog.Logger   // nil: slog's default
}

// Guard tells who callers are and which nodes they may be.
type Guard struct {
	o   Options
	log *clientaddr.Log // of what callers provoke before it is known who they are
}

// New makes a guard.
func New(o Options) *Guard {
	if o.Metrics == nil {
		o.Metrics = uncounted{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Guard{o, clientaddr.NewLog(o.Logger)}
}

// Identify tells who opened the connection of a gRPC call: by its certificate,
// by the token in its metadata, or by both, which must agree (S8). It may ask a
// cluster. Its errors are gRPC statuses for the caller.
func (g *Guard) Identify(ctx context.Context) (Caller, error) {
	proof, by, err := g.identify(ctx)
	if err == nil {
		err = g.o.Denied.check(proof.Workload.String())
	}
	switch {
	case err == nil:
		g.o.Metrics.Proof(by, Proven)
		if p, ok := peer.FromContext(ctx); ok && g.o.Proven != nil {
			g.o.Proven(p.Addr)
		}
		return proof, nil
	case errors.Is(err, errThrottled):
		g.o.Metrics.Proof(by, Throttled)
		return Caller{}, status.Error(codes.ResourceExhausted, err.Error())
	}
	no := refusal{}
	if !errors.As(err, &no) {
		g.o.Metrics.Proof(by, Unproven)
		g.log.Warn(clientaddr.Of(addressOf(ctx)), "a caller cannot be authenticated now", slog.String("address", clientaddr.Text(addressOf(ctx))),
			slog.Any("err", err))
		return Caller{}, status.Error(codes.Unavailable, err.Error())
	}
	g.o.Metrics.Proof(by, Refused)
	g.log.Warn(clientaddr.Of(addressOf(ctx)), "refusing a caller", slog.String("address", clientaddr.Text(addressOf(ctx))),
		slog.String("method", string(by)), slog.Any("err", err))
	return Caller{}, status.Error(codes.Unauthenticated, err.Error())
}

func (g *Guard) identify(ctx context.Context) (Caller, Method, error) {
	certified, has, err := g.byCertificate(ctx)
	if err != nil {
		return Caller{}, ByCertificate, err
	}
	shown, err := credentialsOf(ctx)
	expired, over := g.o.Tokens.over(shown)
	switch {
	case err != nil:
		return Caller{}, ByToken, err
	case has && over:
		certified.Expired = expired
		g.log.Info(clientaddr.Of(addressOf(ctx)), "an expired token beside a certificate does not count",
			slog.String("address", clientaddr.Text(addressOf(ctx))), slog.String("workload", certified.Workload.String()),
			slog.Time("expired", expired))
		return certified, ByCertificate, nil
	case has && shown.token == "":
		return certified, ByCertificate, nil
	case shown.token == "":
		return Caller{}, ByNothing,
			refusal{"show a client certificate of the mesh, or a service account token with the cluster that made it (metadata authorization and clusterid)"}
	}
	cluster, err := g.clusterOf(shown)
	if err != nil {
		return Caller{}, ByToken, err
	}
	tokened, err := g.byToken(ctx, cluster, shown.token)
	if err != nil || !has {
		return tokened, ByToken, err
	}
	if certified.Workload != tokened.Workload || len(certified.Clusters) > 0 && !certified.of(cluster) {
		return Caller{}, ByToken, refusal{"the client certificate and the token are of different workloads"}
	}
	tokened.Certified = true
	byToken := tokened.again
	tokened.again = func(cluster federation.ClusterID) error { return errors.Join(byToken(cluster), certified.again("")) }
	if tokened.Ends.IsZero() || certified.Ends.Before(tokened.Ends) {
		tokened.Ends = certified.Ends
	}
	return tokened, ByToken, nil
}

// byCertificate tells whose certificate the connection has, if it has one.
func (g *Guard) byCertificate(ctx context.Context) (Caller, bool, error) {
	secure, is := tlsOf(ctx)
	if !is || len(secure.State.PeerCertificates) == 0 {
		return Caller{}, false, nil
	}
	proof, err := g.o.Certificates.Verify(secure.State.PeerCertificates)
	if err != nil {
		return Caller{}, false, refusal{err.Error()}
	}
	i := Caller{
		Workload: proof.Workload, Clusters: proof.Clusters, Ends: proof.Ends, Proven: proof.Proven,
		Datacenter: proof.Datacenter, Address: addressOf(ctx), Certified: true,
	}
	i.again = func(cluster federation.ClusterID) error {
		return g.certifiesStill(secure.State.PeerCertificates, proof.Workload, cluster)
	}
	return i, true, nil
}

// certifiesStill verifies a certificate with the roots as they are now (F84). It
// must be of the cluster, unless that is empty.
func (g *Guard) certifiesStill(presented []*x509.Certificate, w authority.Workload, cluster federation.ClusterID) error {
	proof, err := g.o.Certificates.Verify(presented)
	switch {
	case err != nil:
		return fmt.Errorf("what you proved yourself with counts no more: %w", err)
	case proof.Workload != w || cluster != "" && !slices.Contains(proof.Clusters, cluster):
		return fmt.Errorf("the certificate of %s no longer proves membership in cluster %q", w, cluster)
	}
	return nil
}

func (g *Guard) byToken(ctx context.Context, cluster federation.ClusterID, bearer Token) (Caller, error) {
	if _, secure := tlsOf(ctx); !secure {
		return Caller{}, refusal{"a token is taken over TLS only"}
	}
	found, err := g.o.Tokens.check(ctx, addressOf(ctx), cluster, bearer)
	if err != nil {
		return Caller{}, err
	}
	w, err := authority.NewWorkload(g.o.Clusters.AttachState(cluster).TrustDomain, found.Namespace, found.Name)
	if err != nil {
		return Caller{}, refusal{err.Error()}
	}
	again := func(federation.ClusterID) error {
		if err := g.o.Tokens.still(cluster, bearer); err != nil {
			return fmt.Errorf("the token that you proved yourself with counts no more: %w", err)
		}
		return nil
	}
	return Caller{
		Workload: w, Clusters: []federation.ClusterID{cluster}, Pod: found.Pod, Ends: found.Ends,
		Datacenter: found.datacenter, Address: addressOf(ctx), again: again,
	}, nil
}

func tlsOf(ctx context.Context) (credentials.TLSInfo, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return credentials.TLSInfo{}, false
	}
	secure, is := p.AuthInfo.(credentials.TLSInfo)
	return secure, is
}

// addressOf is where the caller is; the zero value for a unix socket.
func addressOf(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return netip.Addr{}
	}
	if tcp, is := p.Addr.(*net.TCPAddr); is {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
