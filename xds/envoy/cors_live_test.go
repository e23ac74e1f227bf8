package envoy_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/federationtest"
)

// TestG84WildcardsOfCORSAreWhatIsAskedFor: a real gateway answers preflights with the method and the
// headers that they ask for where the filter allows all, with credentials and without. No answer allows
// another origin.
func TestG84WildcardsOfCORSAreWhatIsAskedFor(t *testing.T) {
	s := federationtest.Load(t, "../../federation/testdata/scenarios/gatewayapi/other-origins.txtar")
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	ns := testbed.NewNamespace(t, "gateway")
	ns.Join(network, "10.7.0.9")
	testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: "gateway", Config: sidecarConfig(t, nodeOf(t, s.Proxies[0]), s.Snapshot()), Namespace: ns,
	}).WaitReady(time.Minute)
	caller, _ := pod(t, network, "10.7.0.30", nil)
	for _, c := range []struct {
		name, method, path, origin string
		asks                       []string // for a method and for headers
		want                       map[string]string
	}{
		{
			"with credentials", "OPTIONS", "/credentials", "https://any.where:8443",
			[]string{"PUT", "x-1, x-2"},
			map[string]string{
				"Origin": "https://any.where:8443", "Methods": "PUT", "Headers": "x-1, x-2", "Credentials": "true", "Expose": "x-seen", "Age": "5",
			},
		},
		{
			"for no header", "OPTIONS", "/credentials", "https://any.where",
			[]string{"DELETE"},
			map[string]string{"Origin": "https://any.where", "Methods": "DELETE", "Credentials": "true", "Expose": "x-seen", "Age": "5"},
		},
		{
			"without credentials", "OPTIONS", "/none", "https://a.b.example",
			[]string{"PATCH", "x-1"},
			map[string]string{"Origin": "https://a.b.example", "Methods": "PATCH", "Headers": "x-1", "Expose": "*", "Age": "5"},
		},
		{
			"for what is not listed", "OPTIONS", "/listed", "https://a.example",
			[]string{"PATCH", "x-1"},
			map[string]string{"Origin": "https://a.example", "Methods": "PUT", "Headers": "x-a", "Credentials": "true", "Age": "60"},
		},
		{
			"a response to credentials", "GET", "/credentials", "https://any.where", nil,
			map[string]string{"Origin": "https://any.where", "Credentials": "true", "Expose": "x-seen"},
		},
		{
			"a response without", "GET", "/none", "https://a.example", nil,
			map[string]string{"Origin": "https://a.example", "Expose": "*"},
		},
	} {
		if got := allowed(t, caller, c.method, c.path, c.origin, c.asks...); !maps.Equal(got, c.want) {
			t.Errorf("%s: the answer says %v, want %v", c.name, got, c.want)
		}
	}
	for path, origin := range map[string]string{"/none": "https://a.example.org", "/listed": "https://b.example"} {
		for method, asks := range map[string][]string{"OPTIONS": {"PUT", "x-a"}, "GET": nil} {
			if got, is := allowed(t, caller, method, path, origin, asks...)["Origin"]; is {
				t.Errorf("%s %s of %s: the answer allows %q", method, path, origin, got)
			}
		}
	}
}

// allowed are the headers of CORS in the answer to a request, by short names.
func allowed(t *testing.T, from *testbed.Namespace, method, path, origin string, asks ...string) map[string]string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://10.7.0.9"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Origin", origin)
	for i, name := range []string{"Method", "Headers"}[:len(asks)] {
		request.Header.Set("Access-Control-Request-"+name, asks[i])
	}
	response, err := from.Client(nil).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s %s of %s is answered with %d", method, path, origin, response.StatusCode)
	}
	said := map[string]string{}
	for header, name := range map[string]string{
		"Allow-Origin": "Origin", "Allow-Methods": "Methods", "Allow-Headers": "Headers", "Allow-Credentials": "Credentials",
		"Expose-Headers": "Expose", "Max-Age": "Age",
	} {
		// Envoy sends a header without a value where a preflight asks for no headers.
		if value := strings.Join(response.Header.Values("Access-Control-"+header), ";"); value != "" {
			said[name] = value
		}
	}
	return said
}
