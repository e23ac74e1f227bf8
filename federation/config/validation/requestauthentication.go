package validation

import (
	"encoding/json"
	"net/url"

	api "istio.io/api/security/v1beta1"

	"isthmus.dev/isthmus/federation/config/schema"
)

// RequestAuthentication checks a spec of the kind.
func RequestAuthentication(_ string, r *api.RequestAuthentication) []Problem {
	at := spec
	found := attachment(at, r)
	return append(found, each(at.field("jwtRules"), r.GetJwtRules(), jwtRule)...)
}

var jwtRules = []rule[*api.JWTRule]{
	{"issuer", schema.Required, func(r *api.JWTRule) string { return when(r.GetIssuer() == "", "name who issues the tokens") }},
	{"jwks", schema.Forbidden, func(r *api.JWTRule) string {
		return when(r.GetJwks() != "" && r.GetJwksUri() != "", "jwksUri names the keys, too: remove one of the two")
	}},
	{"jwksUri", schema.Invalid, func(r *api.JWTRule) string {
		u, err := url.Parse(r.GetJwksUri())
		wrong := err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"
		return when(r.GetJwksUri() != "" && wrong, "%q is not a URL of http or https", r.GetJwksUri())
	}},
	{"jwks", schema.Invalid, func(r *api.JWTRule) string {
		var set struct {
			Keys []map[string]any `json:"keys"`
		}
		err := json.Unmarshal([]byte(r.GetJwks()), &set)
		return when(r.GetJwks() != "" && (err != nil || set.Keys == nil), `it is not a JSON Web Key Set: write {"keys": […]}`)
	}},
	{"timeout", schema.Invalid, func(r *api.JWTRule) string {
		return either(when(r.GetTimeout() != nil && r.GetTimeout().AsDuration() < 1e6, "%s is too short: write at least 1ms",
			r.GetTimeout().AsDuration()),
			wholeMilliseconds(r.GetTimeout()))
	}},
	{"outputPayloadToHeader", schema.Invalid, func(r *api.JWTRule) string {
		if r.GetOutputPayloadToHeader() == "" {
			return ""
		}
		return headerName(r.GetOutputPayloadToHeader())
	}},
}

func jwtRule(at path, r *api.JWTRule) []Problem {
	found := apply(at, r, jwtRules)
	empty := func(text string) string { return when(text == "", "a text is empty: write it, or remove the item") }
	found = append(found, texts(at.field("audiences"), r.GetAudiences(), empty)...)
	found = append(found, texts(at.field("fromParams"), r.GetFromParams(), empty)...)
	found = append(found, texts(at.field("fromCookies"), r.GetFromCookies(), empty)...)
	found = append(found, each(at.field("fromHeaders"), r.GetFromHeaders(), func(at path, h *api.JWTHeader) []Problem {
		return invalid(at.field("name"), headerName(h.GetName()))
	})...)
	return append(found, each(at.field("outputClaimToHeaders"), r.GetOutputClaimToHeaders(), func(at path, c *api.ClaimToHeader) []Problem {
		found := problem(at.field("claim"), schema.Required, when(c.GetClaim() == "", "name the claim"))
		return append(found, invalid(at.field("header"), headerName(c.GetHeader()))...)
	})...)
}
