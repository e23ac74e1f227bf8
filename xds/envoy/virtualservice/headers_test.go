package virtualservice

import "testing"

// TestG128HeadersShowNoEnvironment: who may have a route at a gateway may not read what its operator gave it.
func TestG128HeadersShowNoEnvironment(t *testing.T) {
	for value, want := range map[string]string{
		"%ENVIRONMENT(TOKEN)%":               "%%ENVIRONMENT(TOKEN)%%",
		"%PROTOCOL%%ENVIRONMENT(TOKEN):9%":   "%%PROTOCOL%%%%ENVIRONMENT(TOKEN):9%%",
		"%CEL(request.headers['a'])%":        "%%CEL(request.headers['a'])%%",
		"100%% of %ENVIRONMENT":              "100%%%% of %%ENVIRONMENT",
		"%%ENVIRONMENT(TOKEN)":               "%%ENVIRONMENT(TOKEN)",
		"%PROTOCOL% %FILTER_STATE(a:PLAIN)%": "%PROTOCOL% %FILTER_STATE(a:PLAIN)%",
	} {
		if got := HeaderFormat(value); got != want {
			t.Errorf("%s is sent as %s, want %s", value, got, want)
		}
	}
}
