package envoy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/destinationrule"
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
		for _, earlier := range rule.GetSubsets()[:i] {
			if a, b := earlier.GetName(), subset.GetName(); a != b && strings.EqualFold(a, b) {
				found = append(found, Field{fmt.Sprintf("subsets[%d].name", i), fmt.Sprintf("%q differs from the subset %q by case alone, and mutual TLS cannot tell them apart: proxies with an identity send nothing to it; give it another name", b, a)})
				break
			}
		}
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
	why := destinationrule.RefusedTLS(tls)
	if why == "" || tls.GetCredentialName() != "" { // the table has that name
		return nil
	}
	return []Field{{at + ".tls.mode", why + "; until then nothing is sent there"}}
}
