package route

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// TestRoutesThatTakeEverything come after those of younger VirtualServices, as in Istio.
func TestRoutesThatTakeEverything(t *testing.T) {
	for match, want := range map[string]bool{
		`{}`:                                               true,
		`{"uri": {"prefix": "/"}}`:                         true,
		`{"uri": {"regex": ".*"}}`:                         true,
		`{"uri": {"prefix": "/a"}}`:                        false,
		`{"uri": {"regex": "/.*"}}`:                        false,
		`{"method": {"exact": "GET"}}`:                     false,
		`{"queryParams": {"a": {}}}`:                       false,
		`{"headers": {"a": {}}}`:                           false,
		`{"uri": {"exact": "/"}}`:                          false,
		`{"uri": {"regex": ".*"}, "headers": {"a": {}}}`:   false,
		`{"uri": {"prefix": "/"}, "ignoreUriCase": true}`:  true,
		`{"uri": {"prefix": "/a"}, "ignoreUriCase": true}`: false,
	} {
		in := &networking.HTTPMatchRequest{}
		if err := protojson.Unmarshal([]byte(match), in); err != nil {
			t.Fatal(err)
		}
		m, err := virtualservice.RouteMatch(in, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := takesEverything(m); got != want {
			t.Errorf("%s takes everything: %v, want %v", match, got, want)
		}
	}
}
