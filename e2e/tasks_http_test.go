package e2e

import (
	"net/http"
	"slices"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

func testHTTPRoutes(t *testing.T, w *tasks) {
	w.task(t, "httpbin-routes")
	w.hub.supported(t, objectRef{Kind: "VirtualService", Name: "httpbin"})
	t.Run("redirect", func(t *testing.T) {
		eventually(t, "a redirect", func() testbed.Response { return w.httpbin("/old") }, func(r testbed.Response) bool {
			return r.Status == http.StatusFound && r.Header.Get("Location") == "http://httpbin.example.com/new"
		})
	})
	t.Run("rewrite and headers", func(t *testing.T) {
		r := w.httpbin("/api/get", "x-secret", "s", "x-tier", "none")
		got := r.Echo(t)
		if got.Path != "/get" || got.Header.Get("x-tier") != "gold" || got.Header.Get("x-via") != "mesh" || got.Header.Get("x-secret") != "" {
			t.Errorf("the service was asked %+v", got)
		}
		if r.Header.Get("x-served-by") != "httpbin" {
			t.Errorf("the answer's headers are %v", r.Header)
		}
	})
	t.Run("retries", func(t *testing.T) {
		if r := w.httpbin("/retried?flaky=1"); r.Status != http.StatusOK {
			t.Errorf("a request that is retried gets %d, %v", r.Status, r.Err)
		}
		if r := w.httpbin("/unretried?flaky=1"); r.Status != http.StatusServiceUnavailable {
			t.Errorf("a request that is not retried gets %d, %v", r.Status, r.Err)
		}
		for path, want := range map[string]int{"/retried": 2, "/unretried": 1} {
			if got := w.asked(path, "httpbin-v1", "httpbin-v2"); got != want && path == "/unretried" || got < want {
				t.Errorf("%s was asked for %d times, want %d", path, got, want)
			}
		}
	})
	t.Run("CORS", func(t *testing.T) { testCORS(t, w) })
}

// asked counts the requests for a path that these apps got.
func (w *tasks) asked(path string, apps ...string) int {
	n := 0
	for _, name := range apps {
		n += len(w.apps[name].requests(path))
	}
	return n
}

func testCORS(t *testing.T, w *tasks) {
	preflight := func(origin string) testbed.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, httpbinURL+"/cors", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "httpbin:8000"
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Method", http.MethodPost)
		answer, err := w.caller.Client(nil).Do(request)
		if err != nil {
			return testbed.Response{Err: err}
		}
		answer.Body.Close()
		return testbed.Response{Status: answer.StatusCode, Header: answer.Header}
	}
	const friend = "https://shop.example.com"
	r := preflight(friend)
	if r.Status != http.StatusOK || r.Header.Get("Access-Control-Allow-Origin") != friend ||
		r.Header.Get("Access-Control-Allow-Methods") != "GET,POST" || r.Header.Get("Access-Control-Max-Age") != "86400" {
		t.Errorf("the preflight of a friend: status %d, %v, %v", r.Status, r.Header, r.Err)
	}
	if n := w.asked("/cors", "httpbin-v1", "httpbin-v2"); n != 0 {
		t.Errorf("the service was asked %d times in a preflight", n)
	}
	if r := preflight("https://evil.example.com"); r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the preflight of a stranger: status %d, %v", r.Status, r.Header)
	}
	if r := w.httpbin("/cors", "Origin", friend); !slices.Equal(r.Header.Values("Access-Control-Allow-Origin"), []string{friend}) {
		t.Errorf("a request of a friend: status %d, %v, %v", r.Status, r.Header, r.Err)
	}
}
