package virtualservice

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"
)

func httpRoute(t *testing.T, text string) *networking.HTTPRoute {
	t.Helper()
	r := &networking.HTTPRoute{}
	if err := protojson.Unmarshal([]byte(text), r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func TestK23DelegatesAreWithinTheRoute(t *testing.T) {
	for name, c := range map[string]struct{ root, delegate, want string }{ // an empty want is a conflict
		"no matches":           {`{}`, `{}`, `{}`},
		"the root's match":     {`{"match": [{"uri": {"prefix": "/a"}}]}`, `{}`, `{"match": [{"uri": {"prefix": "/a"}}]}`},
		"the delegate's match": {`{}`, `{"match": [{"uri": {"prefix": "/a"}}]}`, `{"match": [{"uri": {"prefix": "/a"}}]}`},
		"a longer prefix": {
			`{"match": [{"uri": {"prefix": "/a"}}]}`, `{"match": [{"uri": {"prefix": "/a/b"}}]}`,
			`{"match": [{"uri": {"prefix": "/a/b"}}]}`,
		},
		"exact within prefix": {
			`{"match": [{"uri": {"prefix": "/a"}}]}`, `{"match": [{"uri": {"exact": "/a/b"}}]}`,
			`{"match": [{"uri": {"exact": "/a/b"}}]}`,
		},
		"another prefix":      {`{"match": [{"uri": {"prefix": "/a"}}]}`, `{"match": [{"uri": {"prefix": "/b"}}]}`, ""},
		"a wider prefix":      {`{"match": [{"uri": {"prefix": "/a/b"}}]}`, `{"match": [{"uri": {"prefix": "/a"}}]}`, ""},
		"prefix within exact": {`{"match": [{"uri": {"exact": "/a"}}]}`, `{"match": [{"uri": {"prefix": "/a"}}]}`, ""},
		"regex within prefix": {`{"match": [{"uri": {"prefix": "/a"}}]}`, `{"match": [{"uri": {"regex": "/a.*"}}]}`, ""},
		"the same regex":      {`{"match": [{"uri": {"regex": "/a"}}]}`, `{"match": [{"uri": {"regex": "/a"}}]}`, ""},
		"one of two roots": {
			`{"match": [{"uri": {"prefix": "/a"}}, {"uri": {"prefix": "/b"}}]}`,
			`{"match": [{"uri": {"prefix": "/b/c"}}]}`, `{"match": [{"uri": {"prefix": "/b/c"}}]}`,
		},
		"one of two does not": {
			`{"match": [{"uri": {"prefix": "/a"}}]}`,
			`{"match": [{"uri": {"prefix": "/a/b"}}, {"uri": {"prefix": "/c"}}]}`, "",
		},
		"parts of both": {
			`{"match": [{"uri": {"prefix": "/a"}, "headers": {"x": {"exact": "1"}}}]}`,
			`{"match": [{"headers": {"y": {"exact": "2"}}, "port": 80}]}`,
			`{"match": [{"uri": {"prefix": "/a"}, "headers": {"x": {"exact": "1"}, "y": {"exact": "2"}}, "port": 80}]}`,
		},
		"another header's value": {`{"match": [{"headers": {"x": {"exact": "1"}}}]}`, `{"match": [{"headers": {"x": {"exact": "2"}}}]}`, ""},
		"another port":           {`{"match": [{"port": 80}]}`, `{"match": [{"port": 81}]}`, ""},
		"another source":         {`{"match": [{"sourceLabels": {"a": "1"}}]}`, `{"match": [{"sourceLabels": {"a": "2"}}]}`, ""},
		"a gateway beside":       {`{"match": [{"gateways": ["a/b"]}]}`, `{"match": [{"gateways": ["mesh"]}]}`, ""},
		"a gateway of its own": {
			`{}`, `{"match": [{"gateways": ["g", "mesh", "a/b"]}]}`,
			`{"match": [{"gateways": ["far/g", "mesh", "a/b"]}]}`,
		},
		"names": {
			`{"name": "a", "match": [{"name": "m", "uri": {"prefix": "/"}}]}`, `{"name": "b", "match": [{"name": "n"}]}`,
			`{"name": "a-b", "match": [{"name": "m-n", "uri": {"prefix": "/"}}]}`,
		},
		"what the delegate says": {
			`{"timeout": "1s", "retries": {"attempts": 1}}`, `{"timeout": "2s"}`,
			`{"timeout": "2s", "retries": {"attempts": 1}}`,
		},
		"case": {
			`{"match": [{"uri": {"prefix": "/A"}, "ignoreUriCase": true}]}`, `{"match": [{"port": 80}]}`,
			`{"match": [{"uri": {"prefix": "/A"}, "ignoreUriCase": true, "port": 80}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, delegate := httpRoute(t, c.root), httpRoute(t, c.delegate)
			before := proto.CloneOf(delegate)
			got, ok := Merge(root, delegate, "far")
			if !proto.Equal(before, delegate) {
				t.Errorf("the delegate's object was changed to %s", delegate)
			}
			if ok != (c.want != "") || ok && !proto.Equal(got, httpRoute(t, c.want)) {
				t.Errorf("merged it is %s (%t), want %s", got, ok, c.want)
			}
		})
	}
}
