package federation

import "testing"

func TestResolveHost(t *testing.T) {
	for host, want := range map[string]Hostname{
		"web": "web.shop.svc.cluster.local", "Web": "web.shop.svc.cluster.local", "web.other": "web.other",
		"*": "*", "*.example.com": "*.example.com", "": "", "API.Example.com": "api.example.com",
	} {
		if got := ResolveHost(host, "shop"); got != want {
			t.Errorf("%q is %q, want %q", host, got, want)
		}
	}
	if got := ResolveHostIn("mesh.internal", "web", "shop"); got != "web.shop.svc.mesh.internal" {
		t.Errorf("in another domain: %q", got)
	}
}
