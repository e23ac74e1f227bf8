package csr

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	security "istio.io/api/security/v1alpha1"
)

// TestR02RefusedBeforeTheMessage: an anonymous caller is refused by the headers of its call, whatever it means to send.
func TestR02RefusedBeforeTheMessage(t *testing.T) {
	h := startHub(t, Limits{})
	conn, err := grpc.NewClient(h.at, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(h.server.Pool(), "")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	call, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, security.IstioCertificateService_CreateCertificate_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := call.RecvMsg(&security.IstioCertificateResponse{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("before its message was sent, the call ended with %v", err)
	}
}
