package gatewayapi

import "testing"

// TestG55FiltersOfBackends: filters of the only backend are those of its rule; of several
// backends, headers and the host are changed, and requests of others get 500.
func TestG55FiltersOfBackends(t *testing.T) {
	const api = "to:{host:api.shop,port:{number:80}}"
	one := func(filters string) string {
		return plain + route("r", rules("  - backendRefs: [{name: web, port: 80, filters: ["+filters+"]}]\n"))
	}
	two := func(filters string) string {
		return plain + route("r", rules("  - backendRefs: [{name: web, port: 80}, {name: api, port: 80, filters: ["+filters+"]}]\n"))
	}
	const (
		mirror  = "{type: RequestMirror, requestMirror: {backendRef: {name: api, port: 80}, fraction: {numerator: 1, denominator: 4}}}"
		host    = "{type: URLRewrite, urlRewrite: {hostname: a.example}}"
		path    = "{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /new}}}"
		headers = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X, value: a}]}}"
	)
	for name, test := range map[string]translation{
		"a mirror of the only one": {
			one(mirror), []string{server, all, "  {match:[{uri:{prefix:/}}],mirrors:[{" + api + ",percentage:{value:25}}]," + web + "}"},
		},
		"a URL of the only one": {
			one(path), []string{server, all, "  {match:[{uri:{prefix:/}}],rewrite:{uriRegexRewrite:{match:/.*,rewrite:/new}}," + web + "}"},
		},
		"a host and headers of the only one": {
			one(host + ", " + headers), []string{
				server, all,
				"  {match:[{uri:{prefix:/}}],rewrite:{authority:a.example},route:[{to:{host:web.shop,port:{number:80}},headers:{request:{set:{x:a}}},weight:1}]}",
			},
		},
		"a redirect of the only one": {
			one("{type: RequestRedirect, requestRedirect: {scheme: https}}"),
			[]string{server, all, "  {match:[{uri:{prefix:/}}],redirect:{redirectCode:302,scheme:https}}"},
		},
		"a redirect of one that does not exist": {
			plain + route("r",
				rules("  - backendRefs: [{name: none, port: 80, filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]\n")),
			[]string{
				server, all, "  {500,match:[{uri:{prefix:/}}]}",
				"BACKEND_NOT_FOUND HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[0]",
			},
		},
		"a host of one of two": {
			two(host), []string{
				server, all, "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.shop,port:{number:80}},weight:1},{" + api +
					",headers:{request:{set:{host:a.example}}},weight:1}]}",
			},
		},
		"a mirror of one of two": {
			two(mirror), []string{
				server, all, "  {fault:{abort:{httpStatus:500,percentage:{value:50}}},match:[{uri:{prefix:/}}]," + web + "}",
				"UNSUPPORTED_VALUE HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[1].filters[0]",
			},
		},
		"a URL of the rule and of its backend": {
			plain + route("r", rules("  - filters: ["+host+"]\n    backendRefs: [{name: web, port: 80, filters: ["+path+"]}]\n")),
			[]string{
				server, all, "  {500!,match:[{uri:{prefix:/}}]}",
				"NOT_HONOURED HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[0].filters[0]",
			},
		},
	} {
		t.Run(name, test.run)
	}
}
