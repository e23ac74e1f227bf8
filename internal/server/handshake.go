package server

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"

	"google.golang.org/grpc/credentials"

	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/internal/text"
)

// HandshakeFailure says why a TLS handshake failed.
type HandshakeFailure string

// The failures of handshakes.
const (
	HandshakeClosed      HandshakeFailure = "closed"      // the client closed the connection
	HandshakeTimeout     HandshakeFailure = "timeout"     // the client was silent
	HandshakeNotTLS      HandshakeFailure = "not_tls"     // the client does not speak TLS
	HandshakeCertificate HandshakeFailure = "certificate" // the client's certificate is missing or not trusted
	HandshakeRejected    HandshakeFailure = "rejected"    // the client rejected the hub's certificate or parameters
	HandshakeProtocol    HandshakeFailure = "protocol"    // no common version, cipher suite or application protocol
)

// maxHandshakeError bounds the error in the log: it may repeat what a certificate says.
const maxHandshakeError = 300

// HandshakeMetrics counts failed TLS handshakes. Its methods must not block.
type HandshakeMetrics interface {
	HandshakeFailed(listener, why string)
}

// HandshakeOptions say where failed handshakes are reported; all are required.
type HandshakeOptions struct {
	Listener string // in metrics and log
	Metrics  HandshakeMetrics
	Log      *clientaddr.Log
}

// reportingCredentials report handshakes that fail. gRPC itself says nothing of them.
type reportingCredentials struct {
	credentials.TransportCredentials
	to HandshakeOptions
}

// ServerHandshake is part of credentials.TransportCredentials.
func (c reportingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		c.to.failed(raw.RemoteAddr(), err)
	}
	return conn, info, err
}

// Clone is part of credentials.TransportCredentials.
func (c reportingCredentials) Clone() credentials.TransportCredentials {
	return reportingCredentials{c.TransportCredentials.Clone(), c.to}
}

func (o HandshakeOptions) failed(address net.Addr, err error) {
	why := failureOf(err)
	o.Metrics.HandshakeFailed(o.Listener, string(why))
	if why == HandshakeClosed {
		return // health checks of load balancers do this all the time
	}
	from := clientaddr.OfNet(address)
	o.Log.Warn(from, "TLS handshake failed", slog.String("listener", o.Listener), slog.String("prefix", from.String()),
		slog.String("reason", string(why)), slog.String("err", text.Cut(err.Error(), maxHandshakeError)))
}

// failureOf tells why a handshake failed. Most errors of crypto/tls have no type.
func failureOf(err error) HandshakeFailure {
	var (
		untrusted *tls.CertificateVerificationError
		header    tls.RecordHeaderError
		operation *net.OpError
	)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return HandshakeTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return HandshakeClosed
	case errors.As(err, &header):
		return HandshakeNotTLS
	case errors.As(err, &operation) && operation.Op == "remote error":
		return HandshakeRejected
	case errors.As(err, &untrusted), strings.Contains(err.Error(), "certificate"):
		return HandshakeCertificate
	}
	return HandshakeProtocol
}
