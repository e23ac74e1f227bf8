package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// Limits of the xDS transport (reliability.md 4.9).
const (
	grpcMaxStreams     = 16
	grpcMaxReceive     = 4 << 20
	grpcMaxHeaderList  = 16 << 10
	grpcPingAfter      = 30 * time.Second
	grpcPingTimeout    = 10 * time.Second
	grpcMinPing        = 15 * time.Second
	grpcConnectionAge  = 30 * time.Minute
	grpcAgeGrace       = 30 * time.Second
	grpcConnectTimeout = 10 * time.Second

	grpcWindow           = 64 << 10
	grpcConnectionWindow = 256 << 10
)

// DefaultGRPCIdle is how long a gRPC connection may stay open without a stream.
const DefaultGRPCIdle = 15 * time.Second

// GRPC says how a gRPC server is reached.
type GRPC struct {
	TLS     *tls.Config   // nil: plaintext
	Idle    time.Duration // how long a connection may stay open without a stream
	Partial *PartialMessages
	// Handshakes is where failed TLS handshakes are reported; required with TLS.
	Handshakes HandshakeOptions
}

// Options are the transport limits of a gRPC server. gRPC spreads the connection age by a tenth, so that clients do not
// come back all at once. A connection without a stream is closed when it is idle: no caller has been authenticated on it. The
// windows grow for messages that are being read only: what arrives on a stream before its caller is known is bounded.
func (o GRPC) Options() []grpc.ServerOption {
	var secure credentials.TransportCredentials
	if o.TLS != nil {
		secure = reportingCredentials{credentials.NewTLS(o.TLS), o.Handshakes}
	}
	return []grpc.ServerOption{
		grpc.Creds(o.Partial.credentials(secure)),
		grpc.MaxConcurrentStreams(grpcMaxStreams),
		grpc.MaxRecvMsgSize(grpcMaxReceive),
		grpc.MaxHeaderListSize(grpcMaxHeaderList),
		grpc.ConnectionTimeout(grpcConnectTimeout),
		grpc.StaticStreamWindowSize(grpcWindow),
		grpc.StaticConnWindowSize(grpcConnectionWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: grpcPingAfter, Timeout: grpcPingTimeout,
			MaxConnectionIdle: o.Idle, MaxConnectionAge: grpcConnectionAge, MaxConnectionAgeGrace: grpcAgeGrace,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: grpcMinPing, PermitWithoutStream: true}),
	}
}

// RunGRPC serves until the context ends, then tells clients to go (GOAWAY), waits for their streams for the drain window
// and ends the rest. It closes the listener. It returns nil after a drain.
func RunGRPC(ctx context.Context, server *grpc.Server, listener net.Listener, drain time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drained := make(chan struct{})
	go func() { defer close(drained); server.GracefulStop() }()
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		server.Stop()
		<-drained
	}
	if err := <-failed; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	}
	return nil
}
