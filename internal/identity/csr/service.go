// Package csr serves Istio's certificate service: an authenticated caller gets a
// certificate for exactly that.
package csr

import (
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	security "istio.io/api/security/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/access"
	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/internal/pemtext"
)

// Callers tell who calls; an access.Guard does.
type Callers interface {
	Identify(ctx context.Context) (access.Caller, error)
	CertificateCluster(i access.Caller) (federation.ClusterID, error)
	LastProof(i access.Caller, cluster federation.ClusterID) time.Time
}

// Signer signs certificates; an authority.Authority does.
type Signer interface {
	Sign(o authority.Order) (authority.Leaf, error)
}

// Roots are the roots of each trust domain, PEM; an authority.Trust has them.
type Roots interface {
	Bundles() map[string][]byte
}

// Outcome is the result of a request.
type Outcome string

// The outcomes. A caller who proved nothing is counted where proofs are.
const (
	Signed  Outcome = "signed"
	Refused Outcome = "refused" // what was asked for may not be had
	Limited Outcome = "limited" // too many at once
	Failed  Outcome = "failed"  // there was no signer
)

// Metrics counts requests. Its method must not block.
type Metrics interface {
	Requested(o Outcome)
}

type uncounted struct{}

func (uncounted) Requested(Outcome) {}

// Options are what a Service works with. Callers, Signer and Roots are required.
type Options struct {
	Callers Callers
	Signer  Signer
	Roots   Roots
	Limits  Limits           // zero fields: DefaultLimits
	Now     func() time.Time // default time.Now
	Metrics Metrics          // nil: nothing is counted
	Logger  *slog.Logger     // nil: slog's default
}

// Service is istio.v1.auth.IstioCertificateService.
type Service struct {
	o       Options
	limits  *limits
	refused *clientaddr.Log
}

// New makes a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = uncounted{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Service{o: o, limits: newLimits(o.Limits), refused: clientaddr.NewLog(o.Logger)}
}

// impersonates is the key with which Istio's node proxies ask for certificates of
// others.
const impersonates = "ImpersonatedIdentity"

// create signs the request of an authenticated caller, for its own identity only. Every
// certificate is logged, without what is secret; a caller can repeat what is refused
// without end, so that the lines about it are bounded.
func (s *Service) create(ctx context.Context, caller access.Caller,
	r *security.IstioCertificateRequest,
) (*security.IstioCertificateResponse, error) {
	who := []any{
		slog.String("method", "csr"), slog.String("workload", caller.Workload.String()), slog.String("pod", caller.Pod),
		slog.String("address", from(ctx)),
	}
	cluster, leaf, err := s.sign(caller, r)
	if err != nil {
		outcome, code := judge(err)
		s.o.Metrics.Requested(outcome)
		s.refused.Warn(sourceOf(ctx), "a certificate is not signed", append(who, slog.Any("err", err))...)
		return nil, status.Error(code, err.Error())
	}
	s.o.Metrics.Requested(Signed)
	s.o.Logger.With(who...).Info("a certificate was signed", slog.String("cluster", string(cluster)), slog.String("serial", leaf.Serial),
		slog.Time("expires", leaf.Ends))
	chain := append(blocks(leaf.Chain), string(s.o.Roots.Bundles()[caller.Workload.TrustDomain]))
	return &security.IstioCertificateResponse{CertChain: chain}, nil
}

func (s *Service) sign(caller access.Caller, r *security.IstioCertificateRequest) (federation.ClusterID, authority.Leaf, error) {
	cluster, err := s.o.Callers.CertificateCluster(caller)
	if err != nil {
		return "", authority.Leaf{}, refusal{err}
	}
	if !s.limits.allow(client{caller.Workload, cluster}, s.o.Now()) {
		return "", authority.Leaf{}, errLimited
	}
	if _, other := r.GetMetadata().GetFields()[impersonates]; other {
		return "", authority.Leaf{}, refusal{errors.New("certificates for others are not signed (metadata ImpersonatedIdentity)")}
	}
	key, err := authority.ParseRequest([]byte(r.GetCsr()), caller.Workload)
	if err != nil {
		return "", authority.Leaf{}, refusal{err}
	}
	seconds := min(max(r.GetValidityDuration(), 0), int64(100*365*24*time.Hour/time.Second))
	leaf, err := s.o.Signer.Sign(authority.Order{
		Workload: caller.Workload, Cluster: cluster, Key: key, For: time.Duration(seconds) * time.Second,
		Proven: s.o.Callers.LastProof(caller, cluster), Expired: caller.Expired,
	})
	return cluster, leaf, err
}

// refusal is an error of what was asked for.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

var errLimited = errors.New("too many certificates are asked for; try again in some seconds")

func judge(err error) (Outcome, codes.Code) {
	var no refusal
	switch {
	case errors.Is(err, errLimited):
		return Limited, codes.ResourceExhausted
	case errors.Is(err, authority.ErrOther), errors.Is(err, authority.ErrOldProof):
		return Refused, codes.PermissionDenied
	case errors.As(err, &no):
		return Refused, codes.InvalidArgument
	case errors.Is(err, authority.ErrNoSigner):
		return Failed, codes.Unavailable
	}
	return Failed, codes.FailedPrecondition
}

// blocks are the certificates of a PEM text, one each.
func blocks(text []byte) (all []string) {
	for block := range pemtext.Blocks(text) {
		all = append(all, string(pem.EncodeToMemory(block)))
	}
	return all
}

func from(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

func sourceOf(ctx context.Context) netip.Prefix {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return clientaddr.OfNet(p.Addr)
	}
	return netip.Prefix{}
}
