package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusedAs sends a query with a Host and an Origin and returns the status and the
// code and request ID of the error.
func refusedAs(t *testing.T, h *hubUnderTest, host, origin string) (status int, code, id string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/graphql",
		strings.NewReader(`{"query":"{hub{version}}"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	request.Header.Set("Content-Type", "application/json")
	if origin != "" {
		request.Header.Set("Origin", origin)
	}
	answer, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body struct {
		Errors []struct {
			Extensions struct{ Code, RequestID string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatalf("host %q, origin %q: %v", host, origin, err)
	}
	if len(body.Errors) > 0 {
		code, id = body.Errors[0].Extensions.Code, body.Errors[0].Extensions.RequestID
	}
	if id != "" && id != answer.Header.Get("X-Request-Id") {
		t.Errorf("the error has the ID %q, the header %q", id, answer.Header.Get("X-Request-Id"))
	}
	return answer.StatusCode, code, id
}

// TestR45HostsAndOriginsAreSettings: what is not allowed is refused as GraphQL over
// HTTP refuses, with a code and the ID of the request.
func TestR45HostsAndOriginsAreSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("graphql: {allowedHosts: [mesh.example.com], allowedOrigins: [\"https://dashboard.example.com\"]}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	h := startHub(t, "--config", file)
	for _, c := range []struct {
		host, origin string
		refused      bool
	}{
		{"localhost", "", false},
		{"mesh.example.com", "", false},
		{"mesh.example.com", "https://dashboard.example.com", false},
		{"other.example.com", "", true},
		{"mesh.example.com", "https://other.example.com", true},
	} {
		status, code, id := refusedAs(t, h, c.host, c.origin)
		if !c.refused && (status != http.StatusOK || code != "") || c.refused &&
			(status != http.StatusForbidden || code != "FORBIDDEN" || id == "") {
			t.Errorf("%+v gets %d %q, request ID %q", c, status, code, id)
		}
	}
}

// TestIntrospectionIsASetting: it is on unless the config file says otherwise.
func TestIntrospectionIsASetting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("graphql: {introspection: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const query = "{__schema{queryType{name}}}"
	if err := startHub(t).query(query, new(any)); err != nil {
		t.Errorf("by default it is refused: %v", err)
	}
	if err := startHub(t, "--config", file).query(query, new(any)); err == nil || !strings.Contains(err.Error(), "graphql.introspection") {
		t.Errorf("switched off, it gets %v", err)
	}
}
