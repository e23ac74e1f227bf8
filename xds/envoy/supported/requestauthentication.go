package supported

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks"
)

var _ = add(row{kind: federation.RequestAuthenticationKind, concerns: selects, table: withTargets(&table{
	fields: []string{
		"selector.matchLabels", "jwtRules.issuer", "jwtRules.audiences", "jwtRules.jwks", "jwtRules.jwksUri",
		"jwtRules.fromHeaders", "jwtRules.fromParams", "jwtRules.fromCookies",
		"jwtRules.outputPayloadToHeader", "jwtRules.outputClaimToHeaders", "jwtRules.forwardOriginalToken", "jwtRules.spaceDelimitedClaims",
	},
	hub:     []string{"jwtRules.timeout"},
	refused: map[string]string{},
	values:  unusableKeys,
})})

// unusableKeys finds rules whose tokens are all refused whatever the hub fetches.
func unusableKeys(m proto.Message) []Field {
	n := &valueNotes{}
	spec, _ := m.(*security.RequestAuthentication)
	n.targets(spec)
	for i, rule := range spec.GetJwtRules() {
		at := fmt.Sprintf("jwtRules[%d]", i)
		_, remote := jwks.SourceOf(rule)
		_, err := jwks.Keys(rule.GetJwks())
		switch {
		case rule.GetJwks() != "" && err != nil:
			n.add(at+".jwks", err.Error()+"; tokens of the issuer are refused")
		case rule.GetJwks() == "" && !remote:
			n.add(at,
				"it has no keys, and the issuer is not a URL at which the hub could find them: tokens of the issuer are refused; write jwks or jwksUri")
		}
		n.readAndWritten(at, spec, rule)
		if rule.GetTimeout() != nil && !remote {
			n.add(at+".timeout", "it is for keys that the hub fetches, and those of this rule are in jwks")
		}
		if rule.GetTimeout().AsDuration() > jwks.MostTimeout {
			n.add(at+".timeout", fmt.Sprintf("the hub waits at most %v for keys", jwks.MostTimeout))
		}
	}
	return n.found
}

// readAndWritten reports headers that the rule makes from claims, and in which a rule of the object looks for
// tokens.
func (n *valueNotes) readAndWritten(at string, spec *security.RequestAuthentication, rule *security.JWTRule) {
	const why = "a rule looks for tokens in this header, too: write into another one"
	read := map[string]bool{}
	for _, r := range spec.GetJwtRules() {
		for _, h := range r.GetFromHeaders() {
			read[strings.ToLower(h.GetName())] = true
		}
	}
	if read[strings.ToLower(rule.GetOutputPayloadToHeader())] {
		n.add(at+".outputPayloadToHeader", why)
	}
	for i, c := range rule.GetOutputClaimToHeaders() {
		if read[strings.ToLower(c.GetHeader())] {
			n.add(fmt.Sprintf("%s.outputClaimToHeaders[%d].header", at, i), why)
		}
	}
}
