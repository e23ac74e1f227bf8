package gatewayapi

import (
	"regexp"
	"strconv"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// methods are those that a wildcard means where browsers take it literally.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// cors answers preflight requests of pages of other origins, and lets the origins that are
// allowed read responses. Preflights of other origins do not reach a backend.
func (t *httpTranslation) cors(a *action, in *gateway.HTTPCORSFilter, field string) {
	credentials := in.AllowCredentials != nil && *in.AllowCredentials
	policy := object{"unmatchedPreflights": "IGNORE", "maxAge": "5s", "allowCredentials": credentials}
	if in.MaxAge > 0 {
		policy["maxAge"] = strconv.Itoa(int(in.MaxAge)) + "s"
	}
	origins := []any{}
	for _, origin := range in.AllowOrigins {
		origins = append(origins, originMatch(string(origin)))
	}
	policy["allowOrigins"] = origins
	for name, list := range map[string][]string{
		"allowMethods": texts(in.AllowMethods), "allowHeaders": texts(in.AllowHeaders), "exposeHeaders": texts(in.ExposeHeaders),
	} {
		wild := len(list) == 1 && list[0] == "*" && credentials
		switch {
		case wild && name == "allowMethods":
			list = methods
		case wild:
			t.status.unsupported(field+"."+name, "with credentials, browsers do not take * for every header; the answer names no header: list them")
			continue
		}
		if len(list) > 0 {
			policy[name] = list
		}
	}
	a.base["corsPolicy"] = policy
}

func texts[T ~string](list []T) (all []string) {
	for _, text := range list {
		all = append(all, string(text))
	}
	return all
}

// originMatch matches an origin, in which * is any part of a host. Browsers leave out the
// usual port of the scheme.
func originMatch(origin string) object {
	if origin == "*" {
		return object{"regex": ".*"}
	}
	origin = strings.ToLower(origin)
	switch {
	case strings.HasPrefix(origin, "https:"):
		origin = strings.TrimSuffix(origin, ":443")
	case strings.HasPrefix(origin, "http:"):
		origin = strings.TrimSuffix(origin, ":80")
	}
	if !strings.Contains(origin, "*") {
		return object{"exact": origin}
	}
	return object{"regex": strings.ReplaceAll(regexp.QuoteMeta(origin), `\*`, "[^/:]+")}
}
