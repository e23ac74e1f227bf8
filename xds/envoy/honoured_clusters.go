package envoy

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"
)

// refusedPolicies are the TLS settings of a DestinationRule that cannot be had:
// where they hold, nothing is sent. What else is in vain is in the table.
func refusedPolicies(spec proto.Message) []Field {
	rule, ok := spec.(*networking.DestinationRule)
	if !ok {
		return nil
	}
	found := refusedPolicy("trafficPolicy", rule.GetTrafficPolicy())
	for i, subset := range rule.GetSubsets() {
		found = append(found, refusedPolicy(fmt.Sprintf("subsets[%d].trafficPolicy", i), subset.GetTrafficPolicy())...)
	}
	return found
}

func refusedPolicy(at string, policy *networking.TrafficPolicy) []Field {
	found := refusedField(at, policy.GetTls())
	for i, port := range policy.GetPortLevelSettings() {
		found = append(found, refusedField(fmt.Sprintf("%s.portLevelSettings[%d]", at, i), port.GetTls())...)
	}
	return found
}

func refusedField(at string, tls *networking.ClientTLSSettings) []Field {
	why := refusedTLS(tls)
	if why == "" || tls.GetCredentialName() != "" { // the table has that name
		return nil
	}
	return []Field{{at + ".tls.mode", why + "; until then nothing is sent there"}}
}
