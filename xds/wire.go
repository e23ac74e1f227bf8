package xds

import (
	"context"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// message is a request as it came.
type message struct {
	request
	node *corev3.Node
}

// wire is a stream's side of gRPC: one goroutine receives and one sends.
type wire struct {
	grpc     grpc.ServerStream
	delta    bool
	received <-chan message
	ended    <-chan error // of receiving
	out      chan frame
	written  chan error // one for each frame
}

func (w *wire) read() (message, error) {
	if w.delta {
		var r discoveryv3.DeltaDiscoveryRequest
		err := w.grpc.RecvMsg(&r)
		return message{deltaRequest(&r), r.GetNode()}, err
	}
	var r discoveryv3.DiscoveryRequest
	err := w.grpc.RecvMsg(&r)
	return message{sotwRequest(&r), r.GetNode()}, err
}

func (w *wire) write(ctx context.Context) {
	for {
		select {
		case f := <-w.out:
			w.written <- w.grpc.SendMsg(f)
		case <-ctx.Done():
			return
		}
	}
}

// first waits for the first request, which must name the node.
func (w *wire) first(ctx context.Context, within time.Duration, drain <-chan struct{}) (message, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	var m message
	select {
	case m = <-w.received:
	case err := <-w.ended:
		return m, clean(err)
	case <-ctx.Done():
		return m, ctx.Err()
	case <-drain:
		return m, errDraining
	case <-timer.C:
		return m, status.Errorf(codes.DeadlineExceeded, "no request within %s of opening the stream", within)
	}
	if m.node == nil {
		return m, status.Error(codes.InvalidArgument, "the first request of a stream must have a node")
	}
	return m, nil
}
