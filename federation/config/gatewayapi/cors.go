package gatewayapi

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// wildcard allows all methods or headers. Proxies answer with those that a preflight asks for,
// since browsers take * literally where credentials are sent.
const wildcard = "*"

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
	exposed := texts(in.ExposeHeaders)
	if credentials && slices.Contains(exposed, wildcard) {
		exposed = slices.DeleteFunc(exposed, func(name string) bool { return name == wildcard })
		t.status.unsupported(field+".exposeHeaders",
			"with credentials, browsers do not take * for every header, and it exposes none: list them")
	}
	for name, list := range map[string][]string{
		"allowMethods": texts(in.AllowMethods), "allowHeaders": texts(in.AllowHeaders), "exposeHeaders": exposed,
	} {
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

// originMatch matches an origin, in which * is any part of a host. Browsers exclude the
// usual port of the scheme.
func originMatch(origin string) object {
	if origin == wildcard {
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
