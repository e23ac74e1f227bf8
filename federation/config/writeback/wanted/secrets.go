package wanted

import (
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
)

// missingSecrets says which Secrets of a listener gateways of the cluster lack; "": none.
func missingSecrets(m Mesh, cluster federation.ClusterID, secrets []gatewayapi.Secret) string {
	if m.MissingSecret == nil {
		return ""
	}
	var all []string
	for _, secret := range secrets {
		if why := m.MissingSecret(cluster, secret); why != "" {
			all = append(all, "the Secret "+secret.Namespace+"/"+secret.Name+": "+why)
		}
	}
	return cut(strings.Join(all, "; "))
}

// withoutSecret are the conditions of a listener of which a Secret is missing.
func withoutSecret(conditions []Condition, message string) []Condition {
	for i, c := range conditions {
		switch {
		case c.Status == no && !c.Pending:
		case c.Type == resolved:
			conditions[i] = Condition{Type: resolved, Status: no, Reason: string(gateway.ListenerReasonInvalidCertificateRef), Message: message}
		case c.Type == programmed:
			conditions[i] = Condition{Type: programmed, Status: no, Reason: string(gateway.ListenerReasonInvalid), Message: message}
		}
	}
	return conditions
}

// withoutCertificate are the conditions of a Gateway of which the certificate for backends is missing; with
// an empty message it is not.
func withoutCertificate(conditions []Condition, message string) []Condition {
	for i, c := range conditions {
		if message != "" && c.Type == resolved && c.Status == yes {
			conditions[i] = Condition{
				Type: resolved, Status: no, Reason: string(gateway.GatewayReasonInvalidClientCertificateRef), Message: message,
			}
		}
	}
	return conditions
}
