package validation

import (
	"fmt"
	"strings"
	"testing"

	api "istio.io/api/networking/v1alpha3"
)

// TestR27ManyRoutes: one object with thousands of routes held up the changes of everybody for a minute: each match was
// compared with each before it.
func TestR27ManyRoutes(t *testing.T) {
	var routes []*api.HTTPRoute
	for i := range 40_000 {
		uri := &api.StringMatch{MatchType: &api.StringMatch_Prefix{Prefix: fmt.Sprintf("/%d", i%39_999)}}
		routes = append(routes, &api.HTTPRoute{Match: []*api.HTTPMatchRequest{{Name: fmt.Sprint(i), Uri: uri}, {Name: "again", Uri: uri}}})
	}
	found := unreachable(spec.field("http"), routes)
	if len(found) != 2 || !strings.Contains(fmt.Sprint(found), "route 0 has the same match") {
		t.Errorf("found %v", found)
	}
}
