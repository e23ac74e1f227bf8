package supported

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
)

var _ = add(row{kind: federation.SidecarKind, selects: true, table: sidecarFields()})

func sidecarFields() *table {
	t := &table{
		fields: []string{
			"workloadSelector", "egress.hosts", "egress.port.number", "egress.port.protocol", "egress.bind", "egress.captureMode",
			"outboundTrafficPolicy.mode", "outboundTrafficPolicy.egressProxy",
			"ingress.port.number", "ingress.port.protocol", "ingress.bind", "ingress.captureMode", "ingress.defaultEndpoint",
		},
		refused: map[string]string{
			"egress.port.name":                           "listeners are told apart by their numbers",
			"egress.port.targetPort":                     "requests go to the port of the service",
			"ingress.port.name":                          "listeners are told apart by their numbers",
			"ingress.port.targetPort":                    "write the port of the workload in defaultEndpoint",
			"ingress.tls.httpsRedirect":                  "sidecars do not redirect",
			"ingress.tls.credentialName":                 "sidecars get no credentials; name files on the proxy",
			"ingress.tls.credentialNames":                "sidecars get no credentials; name files on the proxy",
			"ingress.tls.caCertCredentialName":           "sidecars get no credentials; name files on the proxy",
			"ingress.tls.subjectAltNames":                "names of clients are matched by AuthorizationPolicies",
			"ingress.tls.insecureSkipVerify":             "certificates of callers are always verified",
			"ingress.tls.tlsCertificates.caCertificates": "the authorities are those of tls.caCertificates",
		},
		values: sidecarValues,
	}
	for _, field := range []string{
		"mode", "serverCertificate", "privateKey", "caCertificates", "caCrl", "tlsCertificates.serverCertificate", "tlsCertificates.privateKey",
		"verifyCertificateSpki", "verifyCertificateHash", "minProtocolVersion", "maxProtocolVersion", "cipherSuites",
	} {
		t.fields = append(t.fields, "ingress.tls."+field)
	}
	for _, pool := range []string{"ingress.connectionPool", "inboundConnectionPool"} {
		for _, field := range []string{
			"tcp", "http.http1MaxPendingRequests", "http.http2MaxRequests", "http.maxRequestsPerConnection", "http.idleTimeout",
			"http.maxConcurrentStreams", "http.http2KeepAlive",
		} {
			t.fields = append(t.fields, pool+"."+field)
		}
		t.refused[pool+".http.maxRetries"] = "requests to the workload are not tried again"
		t.refused[pool+".http.h2UpgradePolicy"] = "requests reach the workload in the caller's version of HTTP"
		t.refused[pool+".http.useClientProtocol"] = "requests always reach the workload in the caller's version of HTTP"
	}
	return t
}

// sidecarValues finds what is in vain, whatever the proxies are.
func sidecarValues(m proto.Message) []Field {
	spec, ok := m.(*networking.Sidecar)
	if !ok {
		return nil
	}
	n := &valueNotes{found: refusedPings("inboundConnectionPool", spec.GetInboundConnectionPool())}
	for i, out := range spec.GetEgress() {
		n.egress(fmt.Sprintf("egress[%d]", i), out)
	}
	for i, in := range spec.GetIngress() {
		at := fmt.Sprintf("ingress[%d]", i)
		n.found = append(n.found, refusedPings(at+".connectionPool", in.GetConnectionPool())...)
		if in.GetBind() != "" && in.GetCaptureMode() == networking.CaptureMode_IPTABLES {
			n.add(at+".bind", "captured connections come to every address; write captureMode NONE to listen at this one alone")
		}
	}
	return n.found
}

// egress finds what has no effect because connections come to the listener by redirection.
func (n *valueNotes) egress(at string, l *networking.IstioEgressListener) {
	protocol := l.GetPort().GetProtocol()
	if protocol != "" && !node.IsBound(l, false) && !strings.EqualFold(protocol, "HTTP_PROXY") {
		n.add(at+".port.protocol", "the protocol of the service's port counts, unless the listener has bind or captureMode NONE")
	}
	if strings.EqualFold(protocol, "HTTP_PROXY") && l.GetBind() == "" && l.GetCaptureMode() == networking.CaptureMode_IPTABLES {
		n.add(at+".captureMode", "callers dial an HTTP proxy, and nothing listens with IPTABLES: write bind or captureMode NONE; "+
			"the hosts are imported for every port")
	}
	if l.GetPort() == nil && l.GetCaptureMode() == networking.CaptureMode_NONE {
		n.add(at+".captureMode", "a listener for all ports is not one that callers dial; write a listener with a port for each port")
	}
}
