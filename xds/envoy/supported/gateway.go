package supported

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

var _ = add(row{
	kind: federation.GatewayKind, table: gatewayFields(),
	concerns: func(o *federation.Object, f node.Facet, _ *federation.Reader) bool {
		spec, is := o.Spec.(*networking.Gateway)
		return !is || f.HasLabels(spec.GetSelector()) && o.Credentials.Concerns(f.Namespace)
	},
})

func gatewayFields() *table {
	t := &table{
		fields: []string{"selector", "servers.port.number", "servers.port.protocol", "servers.port.name", "servers.bind", "servers.hosts"},
		refused: map[string]string{
			"servers.port.targetPort":                    "Istio's gateways ignore this field; a gateway listens at port.number, or at the target port that its own Service has for it",
			"servers.name":                               "servers are told apart by their port and hosts; statistics do not have this name",
			"servers.defaultEndpoint":                    "Istio does not implement this field; route to a service",
			"servers.tls.tlsCertificates.caCertificates": "the authorities are those of tls.caCertificates",
		},
		values: gatewayValues,
	}
	for _, field := range []string{
		"httpsRedirect", "mode", "serverCertificate", "privateKey", "caCertificates", "caCrl", "credentialName", "credentialNames",
		"caCertCredentialName", "tlsCertificates.serverCertificate", "tlsCertificates.privateKey", "subjectAltNames",
		"verifyCertificateSpki", "verifyCertificateHash", "insecureSkipVerify", "minProtocolVersion", "maxProtocolVersion", "cipherSuites",
	} {
		t.fields = append(t.fields, "servers.tls."+field)
	}
	return t
}

// gatewayValues finds servers that cannot be, whatever else there is.
func gatewayValues(m proto.Message) []Field {
	n := &valueNotes{}
	spec, _ := m.(*networking.Gateway)
	for i, server := range spec.GetServers() {
		path := fmt.Sprintf("servers[%d]", i)
		if _, err := gateway.Bind(server); err != nil {
			n.add(path+".bind", err.Error()+"; nothing listens")
		}
		if number := server.GetPort().GetNumber(); number == 0 || number >= 1<<16 {
			n.add(path+".port.number", fmt.Sprintf("%d is not a port; nothing listens", number))
		}
		how, why := gateway.ServerProtocolOf(server)
		if why != "" {
			n.add(path+".port.protocol", why+"; nothing listens")
			continue
		}
		n.serverTLS(path, server, how)
		for j, host := range server.GetHosts() {
			read := gateway.Hosts([]string{host}, "")
			if len(read) == 0 || how == gateway.ServesTLS && read[0].Name != "*" && !resource.IsServerName(read[0].Name) {
				n.add(fmt.Sprintf("%s.hosts[%d]", path, j), fmt.Sprintf("%q is not a host that callers can ask for; nothing is served for it", host))
			}
		}
	}
	return n.found
}

func (n *valueNotes) serverTLS(path string, server *networking.Server, how gateway.ServerProtocol) {
	tls := server.GetTls()
	if how == gateway.ServesTLS && tls.GetHttpsRedirect() {
		n.add(path+".tls.httpsRedirect", "requests are over TLS already")
	}
	if how == gateway.ServesTLS && tls.GetInsecureSkipVerify().GetValue() && !transport.Unverified(tls) {
		n.add(path+".tls.insecureSkipVerify", "it is for the modes MUTUAL and OPTIONAL_MUTUAL; proxies of the mesh always verify each other")
	}
	switch {
	case how == gateway.ServesHTTP && tls != nil && (tls.GetMode() != networking.ServerTLSSettings_PASSTHROUGH ||
		tls.GetCredentialName() != ""):
		n.add(path+".tls", "the protocol is plaintext; only httpsRedirect has an effect; use the protocol HTTPS")
	case how != gateway.ServesTLS:
	case !gateway.PassesOn(server):
		if _, err := (transport.Termination{Identity: true}).TLS(tls); err != nil {
			below, why, _ := strings.Cut(err.Error(), ": ")
			n.add(path+below, why+"; nothing listens for the server's hosts")
		}
	}
}
