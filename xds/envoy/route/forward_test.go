package route

import (
	"strings"
	"testing"
)

// TestWhereRequestsGo: each case names the field of a VirtualService that it is about.
func TestWhereRequestsGo(t *testing.T) {
	for name, test := range map[string]struct {
		route string // of http, without what every route has
		want  string
		noted string // a part of what is reported about it
	}{
		"destination.host, short":            {`"route": [{"destination": {"host": "web"}}]`, "/: 80||web", ""},
		"destination.host, in upper":         {`"route": [{"destination": {"host": "WEB"}}]`, "/: 80||web", ""},
		"destination.host, an alias":         {`"route": [{"destination": {"host": "old"}}]`, "/: 80||web", ""},
		"destination.host, unknown":          {`"route": [{"destination": {"host": "none"}}]`, "/: 503", "none.shop.svc.cluster.local is not a service that this proxy sees"},
		"destination.host, hidden":           {`"route": [{"destination": {"host": "hidden.bank.svc.cluster.local"}}]`, "/: 503", "is not a service that this proxy sees"},
		"destination.host, refused":          {`"route": [{"destination": {"host": "refused.invalid"}}]`, "/: 503", ""},
		"destination.port":                   {`"route": [{"destination": {"host": "api", "port": {"number": 8080}}}]`, "/: 8080||api", ""},
		"destination.port, none":             {`"route": [{"destination": {"host": "api"}}]`, "/: 80||api", ""},
		"destination.port, only one":         {`"route": [{"destination": {"host": "one"}}]`, "/: 9000||one, hashed", ""},
		"destination.port, unknown":          {`"route": [{"destination": {"host": "api", "port": {"number": 81}}}]`, "/: 503", "has no port 81; name one of its ports"},
		"destination.port, not the only one": {`"route": [{"destination": {"host": "one", "port": {"number": 81}}}]`, "/: 503", "has no port 81"},
		"destination.port, too large":        {`"route": [{"destination": {"host": "api", "port": {"number": 65616}}}]`, "/: 503", "has no port 65535"},
		"destination.subset":                 {`"route": [{"destination": {"host": "web", "subset": "v1"}}]`, "/: 80|v1|web", ""},
		"destination.subset, unknown":        {`"route": [{"destination": {"host": "web", "subset": "v3"}}]`, "/: 503", `a subset "v3"`},
		"route.weight": {
			`"route": [{"destination": {"host": "web"}, "weight": 90}, {"destination": {"host": "api"}, "weight": 10}]`, "/: 90 80||web, 10 80||api", "",
		},
		"route.weight of one":  {`"route": [{"destination": {"host": "web"}, "weight": 7}]`, "/: 80||web", ""},
		"route.weight is 0":    {`"route": [{"destination": {"host": "web"}, "weight": 1}, {"destination": {"host": "api"}}]`, "/: 80||web", ""},
		"route.weight, of all": {`"route": [{"destination": {"host": "web"}}, {"destination": {"host": "api"}}]`, ".route: there is no destination with a weight", ""},
		"a share of nobody keeps its weight": {
			`"route": [{"destination": {"host": "web"}, "weight": 3}, {"destination": {"host": "none"}, "weight": 1}]`,
			"/: 3 80||web, 1 BlackHoleCluster", "none.shop.svc.cluster.local is not a service",
		},
		"weights beyond what Envoy sums": {
			`"route": [{"destination": {"host": "web"}, "weight": 2147483647}, {"destination": {"host": "api"}, "weight": 2147483647}, {"destination": {"host": "one"}, "weight": 1}]`,
			"/: 1073741823 80||web, 1073741823 80||api, 1 9000||one, hashed", "",
		},
		"route.headers of a share": {
			`"route": [{"destination": {"host": "web"}, "weight": 1, "headers": {"request": {"set": {"x": "1", "host": "a.com"}}}}, {"destination": {"host": "api"}, "weight": 1}]`,
			"/: 1 80||web as a.com x=1, 1 80||api", "",
		},
		"route.headers of the only one": {
			`"route": [{"destination": {"host": "web"}, "headers": {"request": {"set": {"x": "1", "host": "a.com"}}}}]`, "/: 80||web, as a.com, x=1", "",
		},
		"headers, the host before a destination's": {
			`"headers": {"request": {"set": {"host": "b.com"}}}, "route": [{"destination": {"host": "web"}, "headers": {"request": {"set": {"host": "a.com"}}}}]`,
			"/: 80||web, as b.com", "",
		},
		"rewrite.authority before headers": {
			`"headers": {"request": {"set": {"host": "b.com"}}}, "rewrite": {"authority": "c.com"}, "route": [{"destination": {"host": "web"}}]`,
			"/: 80||web, as c.com", "",
		},
		"headers.request":  {`"headers": {"request": {"set": {"x": "1"}}}, "route": [{"destination": {"host": "web"}}]`, "/: 80||web, x=1", ""},
		"fault":            {`"fault": {"abort": {"httpStatus": 500}}, "route": [{"destination": {"host": "web"}}]`, "/: 80||web, envoy.filters.http.fault", ""},
		"rewrite.uri":      {`"rewrite": {"uri": "/new"}, "route": [{"destination": {"host": "web"}}]`, "/: 80||web, at /new", ""},
		"timeout":          {`"timeout": "3s", "route": [{"destination": {"host": "web"}}]`, "/: 80||web, within 3s", ""},
		"retries.attempts": {`"retries": {"attempts": 5}, "route": [{"destination": {"host": "web"}}]`, "/: 80||web, 5 retries", ""},
		"retries, none":    {`"retries": {"attempts": 0}, "route": [{"destination": {"host": "web"}}]`, "/: 80||web, 0 retries", ""},
		"retries.backoff, too short": {
			`"retries": {"attempts": 1, "backoff": "0.0001s"}, "route": [{"destination": {"host": "web"}}]`, ".retries.backoff: 100µs is less than 1ms", "",
		},
		"redirect":                      {`"redirect": {"authority": "a.com"}, "route": [{"destination": {"host": "web"}}]`, "/: MOVED_PERMANENTLY to a.com:0", ""},
		"redirect.derivePort":           {`"redirect": {"authority": "a.com", "derivePort": "FROM_REQUEST_PORT", "scheme": "https"}`, "/: MOVED_PERMANENTLY to a.com:80", ""},
		"redirect.redirectCode, no one": {`"redirect": {"redirectCode": 200}`, ".redirect.redirectCode: 200 is not a redirect that Envoy makes", ""},
		"directResponse":                {`"directResponse": {"status": 418}`, "/: 418", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := ruleOf(t, shop(t), inShop, `{"http": [{`+test.route+`}]}`)
			routes, err := r.Routes()
			got := told(Messages(routes))
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "http[0]")
			}
			if got != test.want {
				t.Errorf("requests: %q, want %q", got, test.want)
			}
			if noted := r.noted(); (noted == "") != (test.noted == "") || !strings.Contains(noted, test.noted) {
				t.Errorf("it says %q, want %q", noted, test.noted)
			}
		})
	}
}

// TestCopiesOfRequests: requests do not depend on their copies.
func TestCopiesOfRequests(t *testing.T) {
	for name, test := range map[string]struct {
		mirror string
		want   string
		noted  string
	}{
		"mirror":                          {`"mirror": {"host": "api"}`, ", 100% copied to 80||api", ""},
		"mirror.subset":                   {`"mirror": {"host": "web", "subset": "v2"}`, ", 100% copied to 80|v2|web", ""},
		"mirrorPercentage":                {`"mirror": {"host": "api"}, "mirrorPercentage": {"value": 12.5}`, ", 12.5% copied to 80||api", ""},
		"mirrorPercentage is 0":           {`"mirror": {"host": "api"}, "mirrorPercentage": {"value": 0}`, "", ""},
		"mirrorPercent":                   {`"mirror": {"host": "api"}, "mirrorPercent": 40`, ", 40% copied to 80||api", ""},
		"mirrorPercentage before percent": {`"mirror": {"host": "api"}, "mirrorPercent": 40, "mirrorPercentage": {"value": 60}`, ", 60% copied to 80||api", ""},
		"mirrors": {
			`"mirrors": [{"destination": {"host": "api"}, "percentage": {"value": 5}}, {"destination": {"host": "one"}}]`,
			", 5% copied to 80||api, 100% copied to 9000||one", "",
		},
		"mirrors.percentage is 0": {`"mirrors": [{"destination": {"host": "api"}, "percentage": {"value": 0}}]`, "", ""},
		"mirror.host, unknown":    {`"mirror": {"host": "none"}`, "", "mirror: the destination none.shop.svc.cluster.local is not a service"},
		"mirror.host, a wildcard": {`"mirror": {"host": "*.example.com"}`, "", "resolves the names of requests, and not those of copies"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ruleOf(t, shop(t), inShop, `{"http": [{"route": [{"destination": {"host": "web"}}], `+test.mirror+`}]}`)
			routes, err := r.Routes()
			if err != nil {
				t.Fatal(err)
			}
			if got := told(Messages(routes)); got != "/: 80||web"+test.want {
				t.Errorf("requests: %q, want %q", got, "/: 80||web"+test.want)
			}
			if noted := r.noted(); (noted == "") != (test.noted == "") || !strings.Contains(noted, test.noted) {
				t.Errorf("it says %q, want %q", noted, test.noted)
			}
		})
	}
}
