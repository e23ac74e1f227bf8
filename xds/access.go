package xds

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/xds/envoy"
)

// Access tells who opens streams.
type Access interface {
	// Identify tells who opened the stream, before anything is read from it; it may
	// block for as long as the context. Its error is a gRPC status for the client.
	Identify(ctx context.Context) (Caller, error)
}

// Caller is who opened a stream.
type Caller struct {
	// Identity is the same for all streams that count together: those of one workload of a cluster. Empty: streams of
	// the caller are not counted.
	Identity string
	Source   netip.Addr // from where it connects; not valid: it is not known
	Ends     time.Time  // of what it was proven with; zero: it does not end
	// Proven: by a certificate or a token, over TLS. Its secrets may be sent to it,
	// and what it claims beyond its proof needs a registry that says the same. Else
	// everything is accepted that the caller says, and secrets go to sockets only.
	Proven bool
	// Given is what the proof says about the proxy, which need not say it itself.
	Given envoy.Given
	// LastProof is when the caller, as the node, last proved who it is by something else
	// than a certificate of the hub; nil: it does so all the time. It must not block.
	LastProof func(envoy.Node) time.Time
	// Admit reports whether the caller may be the node, with everything as it is now,
	// and the SPIFFE ID of the node. The error is the reason, for the client. It
	// must not block.
	Admit func(envoy.Node) (workload string, err error)
	// Reads is Admit for a control plane that reads the configuration of the mesh; nil: the
	// caller may not.
	Reads func() (workload string, err error)
	// Inspects is Admit for a client that asks which proxies there are and what they
	// accepted; nil: the caller may not.
	Inspects func() (workload string, err error)
}

// xdsClient is who opened a stream: what it has proven, and the node that it says it is.
type xdsClient struct {
	server  *Server
	log     *slog.Logger
	node    envoy.Node
	claimed federation.ClusterID // as the node says it: an ID or an alias
	from    netip.Prefix         // where the caller is
	caller  Caller
	// identified: the caller proved who it is.
	identified bool
	account    *account // of the caller; nil: it has no limits
	nodeBytes  int      // counted in the account
	rate       *rate.Limiter
	workload   string    // its SPIFFE ID; empty: it is not known
	proven     time.Time // when that was looked at last
	trusted    bool      // with secrets
}

// identify tells who opened the stream, and counts it until the stream is left. Clusters must be known for that.
func (c *xdsClient) identify(ctx context.Context) error {
	if p, ok := peer.FromContext(ctx); ok {
		c.from = clientaddr.OfNet(p.Addr)
	}
	if access := c.server.options.Access; access != nil {
		if err := c.server.ready(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, c.server.options.Limits.FirstRequest)
		defer cancel()
		var err error
		c.caller, err = access.Identify(ctx)
		if err != nil {
			return err
		}
		c.account, err = c.server.callers.enter(c.caller.Identity, c.server.options.Limits)
		if err != nil {
			return err
		}
		c.identified = true
	}
	c.trusted = c.server.mayHaveSecrets(ctx, c.caller)
	return nil
}

// meet takes the node that the first request says. Its error is for the client.
func (c *xdsClient) meet(said *corev3.Node) error {
	node, err := envoy.ParseNodeOf(said, c.caller.Given)
	if err != nil {
		c.node.ID = printable(said.GetId()) // for the log: operators look for the pod
		return status.Error(codes.InvalidArgument, printable(err.Error()))
	}
	c.node, c.claimed = node, node.Cluster
	c.node.Cluster = c.server.options.Snapshots.Latest().ClusterNamed(c.claimed)
	c.node.Proven = c.caller.Proven
	if err := c.admit(time.Now()); err != nil {
		return err
	}
	if err := c.keepNode(); err != nil {
		return err
	}
	limits := c.server.options.Limits
	c.rate = rate.NewLimiter(rate.Limit(limits.Requests), limits.Burst)
	c.log = c.log.With(slog.String("node", node.ID), slog.String("cluster", string(c.node.Cluster)))
	return nil
}

// admit checks that the caller may be the stream's node now.
func (c *xdsClient) admit(now time.Time) error {
	c.proven = now
	if ends := c.caller.Ends; !ends.IsZero() && !now.Before(ends) {
		return status.Errorf(codes.Unauthenticated, "what you proved yourself with has ended at %s: connect again with what is newer",
			ends.UTC().Format(time.RFC3339))
	}
	if c.caller.Admit == nil {
		return nil
	}
	workload, err := c.caller.Admit(c.node)
	if err != nil {
		c.provoke("node identity rejected", slog.Any("err", err))
		return status.Error(codes.PermissionDenied, printable(err.Error()))
	}
	c.workload = workload
	return nil
}

// keepNode counts the node to the caller's account until the stream is left.
func (c *xdsClient) keepNode() error {
	bytes := c.node.Bytes()
	if err := c.account.addNode(bytes); err != nil {
		return err
	}
	c.nodeBytes = bytes
	return nil
}

// warn writes why the hub ended a stream. Callers that did not prove who they are do not get to fill the log.
func (c *xdsClient) warn(message string, err error) {
	if c.server.options.Access != nil && !c.identified {
		c.server.strangers.Warn(c.from, message, slog.Any("err", err))
		return
	}
	c.provoke(message, slog.Any("err", err))
}

// provoke writes what a caller made the hub say. No caller can fill the log.
func (c *xdsClient) provoke(message string, attrs ...any) {
	c.server.provoked.Warn(c.from, message, append(attrs, slog.String("node", c.node.ID), slog.String("cluster", string(c.node.Cluster)))...)
}

// end gives back the place of a stream that was identified.
func (c *xdsClient) end() {
	c.account.removeNode(c.nodeBytes)
	c.account.leave()
}

// stillAdmitted looks again when it is time.
func (c *xdsClient) stillAdmitted(now time.Time) error {
	if at := c.nextProof(); at.IsZero() || now.Before(at) {
		return nil
	}
	return c.admit(now)
}

// nextProof is when to look again whether the stream may go on; zero: never.
func (c *xdsClient) nextProof() time.Time {
	if c.caller.Admit == nil {
		return time.Time{}
	}
	next := c.proven.Add(c.server.options.timing.access)
	if ends := c.caller.Ends; !ends.IsZero() && ends.Before(next) {
		return ends
	}
	return next
}
