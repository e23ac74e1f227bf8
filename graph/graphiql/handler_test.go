package graphiql_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus.dev/isthmus/graph/graphiql"
)

func get(t *testing.T, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	graphiql.Handler("graphql", `{ a(b: "</div>") }`).ServeHTTP(recorder, request)
	return recorder
}

func TestPageNamesEndpointAndEscapesQuery(t *testing.T) {
	answer := get(t, "/hub/graphiql")
	body := answer.Body.String()
	if answer.Code != http.StatusOK || !strings.Contains(body, `data-endpoint="graphql"`) {
		t.Fatalf("got %d %s", answer.Code, body)
	}
	if !strings.Contains(body, `data-query="{ a(b: &#34;&lt;/div&gt;&#34;) }"`) {
		t.Errorf("the default query is not in the page, escaped: %s", body)
	}
	if strings.Contains(body, "<script>") || strings.Contains(body, "<style") {
		t.Errorf("the page has inline script or style: %s", body)
	}
}

func TestPolicyAllowsNoOtherHostAndNoInlineScript(t *testing.T) {
	policy := get(t, "/graphiql").Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'self';") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("got policy %q", policy)
	}
	for _, forbidden := range []string{"http:", "https:", "*", "unsafe-eval", "script-src"} {
		if strings.Contains(policy, forbidden) {
			t.Errorf("policy %q has %q", policy, forbidden)
		}
	}
}

func TestAssetsComePackedPlainOrNotAtAll(t *testing.T) {
	packed := get(t, "/graphiql/graphiql.js", "Accept-Encoding", "br, gzip")
	plain := get(t, "/graphiql/graphiql.js", "Accept-Encoding", "gzip;q=0")
	if packed.Header().Get("Content-Encoding") != "gzip" || plain.Header().Get("Content-Encoding") != "" {
		t.Fatalf("got encodings %q and %q", packed.Header().Get("Content-Encoding"), plain.Header().Get("Content-Encoding"))
	}
	reader, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil || string(unpacked) != plain.Body.String() {
		t.Errorf("the two forms differ (%v)", err)
	}
	tag := packed.Header().Get("ETag")
	if tag == "" || tag == plain.Header().Get("ETag") {
		t.Errorf("the two forms have the ETags %q and %q", tag, plain.Header().Get("ETag"))
	}
	again := get(t, "/graphiql/graphiql.js", "Accept-Encoding", "gzip", "If-None-Match", tag)
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("a known ETag got %d with %d bytes", again.Code, again.Body.Len())
	}
}

func TestPathsAndMethods(t *testing.T) {
	if answer := get(t, "/hub/graphiql/"); answer.Code != http.StatusPermanentRedirect || answer.Header().Get("Location") != "../graphiql" {
		t.Errorf("a trailing slash got %d to %q", answer.Code, answer.Header().Get("Location"))
	}
	if answer := get(t, "/graphiql/no-such.js"); answer.Code != http.StatusNotFound {
		t.Errorf("an unknown asset got %d", answer.Code)
	}
	recorder := httptest.NewRecorder()
	graphiql.Handler("graphql", "").ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/graphiql", nil))
	if recorder.Code != http.StatusMethodNotAllowed || recorder.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST got %d, Allow %q", recorder.Code, recorder.Header().Get("Allow"))
	}
}
