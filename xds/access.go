package xds

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	origin "isthmus.dev/isthmus/internal/source"
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
	Ends     time.Time // of what it was proven with; zero: it does not end
	// Proven: by a certificate or a token, over TLS. Its secrets may be sent to it,
	// and what it claims beyond its proof needs a registry that says the same. Else
	// everything is accepted that the caller says, and secrets go to sockets only.
	Proven bool
	// LastProof is when the caller, as the node, last proved who it is by something else
	// than a certificate of the hub; nil: it does so all the time. It must not block.
	LastProof func(envoy.Node) time.Time
	// Admit tells whether the caller may be the node, with everything as it is now,
	// and the SPIFFE ID of the node. The error is the reason, for the client. It
	// must not block.
	Admit func(envoy.Node) (workload string, err error)
}

// identify tells who opened the stream, and counts it until the stream is left. Clusters must be known for that.
func (st *stream) identify(ctx context.Context) error {
	if p, ok := peer.FromContext(ctx); ok {
		st.from = origin.OfNet(p.Addr)
	}
	if access := st.server.options.Access; access != nil {
		select {
		case <-st.server.options.Ready:
		case <-ctx.Done():
			return ctx.Err()
		case <-st.server.drain:
			return errDraining
		}
		ctx, cancel := context.WithTimeout(ctx, st.server.options.Limits.FirstRequest)
		defer cancel()
		var err error
		if st.caller, err = access.Identify(ctx); err != nil {
			return err
		}
		if st.account, err = st.server.callers.enter(st.caller.Identity, st.server.options.Limits); err != nil {
			return err
		}
		st.identified = true
	}
	st.trusted = st.server.mayHaveSecrets(ctx, st.caller)
	return nil
}

// admit tells whether the caller may be the stream's node now.
func (st *stream) admit(now time.Time) error {
	st.proven = now
	if ends := st.caller.Ends; !ends.IsZero() && !now.Before(ends) {
		return status.Errorf(codes.Unauthenticated, "what you proved yourself with has ended at %s: connect again with what is newer", ends.UTC().Format(time.RFC3339))
	}
	if st.caller.Admit == nil {
		return nil
	}
	workload, err := st.caller.Admit(st.node)
	if err != nil {
		st.provoke("a caller may not be the node that it says it is", slog.Any("err", err))
		return status.Error(codes.PermissionDenied, printable(err.Error()))
	}
	st.workload = workload
	return nil
}

// keepNode counts the node to the caller's account until the stream is left.
func (st *stream) keepNode() error {
	bytes := st.node.Bytes()
	if err := st.account.addNode(bytes); err != nil {
		return err
	}
	st.nodeBytes = bytes
	return nil
}

// warn writes why the hub ended a stream. Callers that did not prove who they are do not get to fill the log.
func (st *stream) warn(message string, err error) {
	if st.server.options.Access != nil && !st.identified {
		st.server.strangers.Warn(st.from, message, slog.Any("err", err))
		return
	}
	st.provoke(message, slog.Any("err", err))
}

// provoke writes what a caller made the hub say. Whoever it is, it does not get to fill the log.
func (st *stream) provoke(message string, attrs ...any) {
	st.server.provoked.Warn(st.from, message, append(attrs, slog.String("node", st.node.ID), slog.String("cluster", string(st.node.Cluster)))...)
}

// end gives back the place of a stream that was identified.
func (st *stream) end() {
	st.account.removeNode(st.nodeBytes)
	st.account.leave()
}

// stillAdmitted looks again when it is time.
func (st *stream) stillAdmitted(now time.Time) error {
	if at := st.nextProof(); at.IsZero() || now.Before(at) {
		return nil
	}
	return st.admit(now)
}

// nextProof is when to look again whether the stream may go on; zero: never.
func (st *stream) nextProof() time.Time {
	if st.caller.Admit == nil {
		return time.Time{}
	}
	next := st.proven.Add(st.server.options.timing.access)
	if ends := st.caller.Ends; !ends.IsZero() && ends.Before(next) {
		return ends
	}
	return next
}
