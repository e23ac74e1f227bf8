package federation_test

import (
	"testing"

	"isthmus.dev/isthmus/federation"
)

func TestResolveHost(t *testing.T) {
	for host, want := range map[string]federation.Hostname{
		"web": "web.shop.svc.cluster.local", "Web": "web.shop.svc.cluster.local", "web.other": "web.other",
		"*": "*", "*.example.com": "*.example.com", "": "", "API.Example.com": "api.example.com",
	} {
		if got := federation.ResolveHost(host, "shop"); got != want {
			t.Errorf("%q is %q, want %q", host, got, want)
		}
	}
	if got := federation.ResolveHostIn("mesh.internal", "web", "shop"); got != "web.shop.svc.mesh.internal" {
		t.Errorf("in another domain: %q", got)
	}
}
