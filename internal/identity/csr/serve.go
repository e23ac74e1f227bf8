package csr

import (
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	security "istio.io/api/security/v1alpha1"
)

// messageTimeout is how long the request of a caller that is known may take to arrive.
const messageTimeout = 10 * time.Second

// Register adds the service to a gRPC server. CreateCertificate is unary, and gRPC reads the message of a unary call before
// its handler: up to 4 MiB of anybody. On the wire a unary call is a stream of one message, so it is served as one, and
// the message is read after the caller is known.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	istio := security.IstioCertificateService_ServiceDesc
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: istio.ServiceName, HandlerType: (*any)(nil), Metadata: istio.Metadata,
		Streams: []grpc.StreamDesc{{
			StreamName: istio.Methods[0].MethodName,
			Handler:    func(_ any, stream grpc.ServerStream) error { return s.serve(stream) },
		}},
	}, s)
}

func (s *Service) serve(stream grpc.ServerStream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Metrics.Requested(Failed)
			s.o.Logger.Error("a request for a certificate panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = status.Error(codes.Internal, "the hub failed to sign; its log says why")
		}
	}()
	caller, err := s.o.Callers.Identify(stream.Context())
	if err != nil {
		return err
	}
	request := &security.IstioCertificateRequest{}
	received := make(chan error, 1)
	go func() { received <- stream.RecvMsg(request) }() // ends with the stream, at the latest when serve returns
	timer := time.NewTimer(messageTimeout)
	defer timer.Stop()
	select {
	case err = <-received:
	case <-timer.C:
		return status.Errorf(codes.DeadlineExceeded, "the request did not arrive within %s", messageTimeout)
	}
	if err != nil {
		return err
	}
	answer, err := s.create(stream.Context(), caller, request)
	if err != nil {
		return err
	}
	return stream.SendMsg(answer)
}
