package supported_test

import (
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// TestG93HTTPProxiesThatNothingReaches: a listener of an HTTP proxy that is reached by redirection alone is reported, and one
// that callers may dial is not.
func TestG93HTTPProxiesThatNothingReaches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bind     string
		mode     networking.CaptureMode
		reported bool
	}{
		"redirected":        {"", networking.CaptureMode_IPTABLES, true},
		"at an address":     {"127.0.0.1", networking.CaptureMode_IPTABLES, false},
		"without capture":   {"", networking.CaptureMode_NONE, false},
		"as the proxies do": {"", networking.CaptureMode_DEFAULT, false}, // proxies that capture nothing have it
	} {
		o := &federation.Object{
			Key: federation.ObjectKey{Group: federation.SidecarKind.Group, Kind: federation.SidecarKind.Name, Namespace: "shop", Name: "a"},
			Spec: &networking.Sidecar{Egress: []*networking.IstioEgressListener{{
				Port: &networking.SidecarPort{Number: 8888, Protocol: "HTTP_PROXY", Name: "proxy"},
				Bind: c.bind, CaptureMode: c.mode, Hosts: []string{"./*"},
			}}},
		}
		reported := false
		for _, f := range supported.NotHonoured(o) {
			reported = reported || f.Path == "egress[0].captureMode"
		}
		if reported != c.reported {
			t.Errorf("%s: reported is %t", name, reported)
		}
	}
}
