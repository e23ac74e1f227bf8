package supported

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/xds/envoy/authentication"
)

const remoteKeys = "the hub does not fetch keys yet: tokens of the issuer are refused; write the keys into jwks"

var _ = add(row{kind: authentication.RequestKind, table: withTargets(&table{
	fields: []string{
		"selector.matchLabels", "jwtRules.issuer", "jwtRules.audiences", "jwtRules.jwks", "jwtRules.fromHeaders", "jwtRules.fromParams", "jwtRules.fromCookies",
		"jwtRules.outputPayloadToHeader", "jwtRules.outputClaimToHeaders", "jwtRules.forwardOriginalToken", "jwtRules.spaceDelimitedClaims",
	},
	refused: map[string]string{
		"jwtRules.jwksUri": remoteKeys, "jwtRules.timeout": remoteKeys,
	},
	values: unusableKeys,
})})

// unusableKeys finds rules whose tokens are all refused.
func unusableKeys(m proto.Message) []Field {
	n := &valueNotes{}
	spec, _ := m.(*security.RequestAuthentication)
	n.targets(spec)
	for i, rule := range spec.GetJwtRules() {
		if _, err := authentication.Keys(rule.GetJwks()); rule.GetJwks() != "" && err != nil {
			n.add(fmt.Sprintf("jwtRules[%d].jwks", i), err.Error()+"; tokens of the issuer are refused")
		}
		if rule.GetJwks() == "" && rule.GetJwksUri() == "" {
			n.add(fmt.Sprintf("jwtRules[%d]", i), "it has no keys, and the hub does not ask the issuer where they are: tokens of the issuer are refused; write them into jwks")
		}
	}
	return n.found
}
