package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrNotAPIServer marks an answer that no API server gives.
var ErrNotAPIServer = errors.New("the answer is not that of a Kubernetes API server")

// Trouble is the class of an error. Its values are stable.
type Trouble string

// The classes of Diagnose.
const (
	TroubleNone         Trouble = ""
	TroubleUnreachable  Trouble = "unreachable"
	TroubleTimeout      Trouble = "timeout"
	TroubleRefused      Trouble = "address-refused"
	TroubleTLS          Trouble = "tls"
	TroubleUnauthorized Trouble = "unauthorized"
	TroubleForbidden    Trouble = "forbidden"
	TroubleExpired      Trouble = "expired-version"
	TroubleBusy         Trouble = "busy"
	TroubleNotFound     Trouble = "not-found"
	TroubleServer       Trouble = "server-error"
	TroubleNotAPIServer Trouble = "not-an-api-server"
	TroubleCanceled     Trouble = "canceled"
)

// Diagnosis says what an error of a client means. Message is one line of our own words: nothing that the server
// sent is repeated, except a resource name in the form of one (S40, B-K18).
type Diagnosis struct {
	Trouble Trouble
	Message string
	// Definite is true when trying again without a change of credentials, address or rights cannot help.
	Definite bool
}

// Explain is the message of Diagnose.
func Explain(err error) string { return Diagnose(err).Message }

// Diagnose classifies an error of Connect, Identity or any request of a Client.
func Diagnose(err error) Diagnosis {
	if err == nil {
		return Diagnosis{}
	}
	for _, look := range []func(error) (Diagnosis, bool){refused, status, certificateTrouble, network} {
		if diagnosis, ok := look(err); ok {
			return diagnosis
		}
	}
	return Diagnosis{
		Trouble: TroubleNotAPIServer, Definite: true,
		Message: "the answer is not that of a Kubernetes API server; check the server URL",
	}
}

func refused(err error) (Diagnosis, bool) {
	var refusal *Refusal
	var address *addressError
	switch {
	case errors.As(err, &refusal):
		return Diagnosis{Trouble: TroubleRefused, Definite: true, Message: refusal.Error()}, true
	case errors.As(err, &address):
		return Diagnosis{
				Trouble: TroubleRefused, Definite: true,
				Message: "the server's name leads to an address that the address policy refuses: " + address.why.Error() + "; correct the server URL",
			},
			true
	case errors.Is(err, ErrAddressRefused):
		return Diagnosis{
			Trouble: TroubleRefused, Definite: true,
			Message: "the server's name leads to an address that the address policy refuses",
		}, true
	case errors.Is(err, ErrRedirect):
		return Diagnosis{
			Trouble: TroubleNotAPIServer, Definite: true,
			Message: "the server redirects, which an API server does not; check the server URL",
		}, true
	case errors.Is(err, ErrTooLarge):
		return Diagnosis{Trouble: TroubleNotAPIServer, Definite: true, Message: "the server's answer is larger than allowed"}, true
	case errors.Is(err, context.Canceled):
		return Diagnosis{Trouble: TroubleCanceled, Message: "the request was canceled"}, true
	}
	return Diagnosis{}, false
}

func status(err error) (Diagnosis, bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return Diagnosis{}, false
	}
	code := answer.Status().Code
	switch {
	case apierrors.IsUnauthorized(err):
		return Diagnosis{
			Trouble: TroubleUnauthorized, Definite: true,
			Message: "the API server does not accept the credentials (401); they may have expired, been revoked or be for another server",
		}, true
	case apierrors.IsForbidden(err):
		return Diagnosis{Trouble: TroubleForbidden, Definite: true, Message: forbidden(answer)}, true
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return Diagnosis{Trouble: TroubleExpired, Message: "the watched version is gone (410); a new list is needed"}, true
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), code == http.StatusServiceUnavailable:
		return Diagnosis{Trouble: TroubleBusy, Message: fmt.Sprintf("the API server is busy (%d)", code)}, true
	case apierrors.IsTimeout(err):
		return Diagnosis{Trouble: TroubleTimeout, Message: "the API server took too long"}, true
	case apierrors.IsNotFound(err):
		return Diagnosis{
			Trouble: TroubleNotFound, Definite: true,
			Message: "the API server does not have what was asked for (404); check the server URL and its version",
		}, true
	case code >= 500:
		return Diagnosis{Trouble: TroubleServer, Message: fmt.Sprintf("the API server failed (%d)", code)}, true
	}
	return Diagnosis{
		Trouble: TroubleNotAPIServer, Definite: true,
		Message: fmt.Sprintf("the server answered with an unexpected status (%d); check the server URL", code),
	}, true
}

const plainMessage = "the credentials lack a right (403)"

var (
	deniedVerb = regexp.MustCompile(`cannot (get|list|watch|create|update|patch|delete) resource "([a-z]{1,63}(?:/[a-z]{1,30})?)" in API group "([a-z0-9.]{0,63})"`)
	plainName  = regexp.MustCompile(`\A[a-z]{1,63}\z`)
)

// forbidden names the missing right when the answer has the form that API servers use.
func forbidden(answer apierrors.APIStatus) string {
	if match := deniedVerb.FindStringSubmatch(answer.Status().Message); match != nil {
		group := match[3]
		if group == "" {
			group = "core"
		}
		return fmt.Sprintf("%s: %s on %s of group %s; grant it to the account", plainMessage, match[1], match[2], group)
	}
	if details := answer.Status().Details; details != nil && plainName.MatchString(details.Kind) {
		return fmt.Sprintf("%s on %s; grant it to the account", plainMessage, details.Kind)
	}
	return plainMessage
}

func certificateTrouble(err error) (Diagnosis, bool) {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	message := ""
	switch {
	case errors.As(err, &unknown):
		message = "the server's certificate is signed by an unknown authority; put the cluster's CA into certificate-authority-data"
	case errors.As(err, &host):
		message = "the server's certificate is for another name; use the right server URL, or tls-server-name with the cluster's CA"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		message = "the server's certificate has expired or is not valid yet"
	case errors.As(err, &invalid), errors.As(err, &verification):
		message = "the server's certificate cannot be verified"
	case errors.As(err, &alert):
		message = "the server ended the TLS handshake; it may want another client certificate"
	case errors.As(err, &record):
		return Diagnosis{
			Trouble: TroubleNotAPIServer, Definite: true,
			Message: "the server does not speak TLS; check host and port of the server URL",
		}, true
	default:
		return Diagnosis{}, false
	}
	return Diagnosis{Trouble: TroubleTLS, Definite: true, Message: message}, true
}

func network(err error) (Diagnosis, bool) {
	var dns *net.DNSError
	var timeout net.Error
	var operation *net.OpError
	var link linkError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return Diagnosis{Trouble: TroubleUnreachable, Message: "the name in the server URL has no address"}, true
	case errors.As(err, &dns):
		return Diagnosis{Trouble: TroubleUnreachable, Message: "the name in the server URL cannot be resolved now"}, true
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Diagnosis{Trouble: TroubleTimeout, Message: "the API server does not answer in time"}, true
	case errors.Is(err, syscall.ECONNREFUSED):
		return Diagnosis{Trouble: TroubleUnreachable, Message: "the API server cannot be reached: connection refused"}, true
	case garbled(err):
		return Diagnosis{}, false
	case errors.As(err, &operation), errors.As(err, &link), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Diagnosis{Trouble: TroubleUnreachable, Message: "the connection to the API server failed, or its answer was cut off"}, true
	}
	return Diagnosis{}, false
}
