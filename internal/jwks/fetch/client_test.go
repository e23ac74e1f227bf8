package fetch

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
)

const (
	octKey = `{"kty":"oct","k":"c2VjcmV0"}`
	octSet = `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`
)

// answers are what the server of keys says at a path.
var answers = map[string]http.HandlerFunc{
	"/keys":    says(`{"keys":[{"kty":"what"},` + octKey + `]}`),
	"/unknown": says(`{"keys":[{"kty":"what"},{"kty":"EC","crv":"secp256k1"}]}`),
	"/none":    says(`{"keys":[]}`),
	"/html":    says(`<html>`),
	"/list":    says(`[]`),
	"/huge":    says(`{"keys":[` + octKey + `],"more":"` + strings.Repeat("x", mostBytes) + `"}`),
	"/many":    says(`{"keys":[` + strings.Repeat(octKey+",", mostKeys) + octKey + `]}`),
	"/slow":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"/drips": func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"keys":[`))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	},
	"/status":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	"/moved":    to("/keys"),
	"/loop":     to("/loop"),
	"/metadata": to("http://169.254.169.254/latest/meta-data?secret"),
	"/cloud":    to("http://metadata.google.internal/"),
	"/file":     to("file:///etc/passwd"),
	"/odd":      to("http://2852039166/"),
	"/issuer/.well-known/openid-configuration": func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"issuer":"i","jwks_uri":"http://` + r.Host + `/keys"}`))
	},
	"/bad/.well-known/openid-configuration":      says(`{"jwks_uri":"http://169.254.169.254/keys"}`),
	"/relative/.well-known/openid-configuration": says(`{"jwks_uri":"/keys"}`),
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func to(uri string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, uri, http.StatusFound) }
}

// TestK11WhatServersSayIsBounded: keys come from what a policy allows, after redirects too, and an answer
// that is slow, large or not a set of keys is refused with a cause that has no secrets.
func TestK11WhatServersSayIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Referer() != "" {
			t.Errorf("a server gets the URI of the one before: %s", r.Referer())
		}
		answers[r.URL.Path](w, r)
	}))
	defer server.Close()
	secure := httptest.NewUnstartedServer(says(octSet))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	c := client{policy: func() federation.AddressPolicy { return federation.AddressPolicy{AllowLoopback: true} }}
	for _, at := range []struct {
		uri, cause string
		openID     bool
	}{
		{"/keys", "", false},
		{"/moved", "", false},
		{"/unknown", `none of its keys can be used: crv "secp256k1" is not supported`, false},
		{"/none", "it has no keys", false},
		{"/html", "the answer is not JSON", false},
		{"/list", "the answer is not a JSON Web Key Set", false},
		{"/huge", "the answer has more than 262144 bytes", false},
		{"/many", "it has more than 100 keys", false},
		{"/slow", "the server did not answer in time", false},
		{"/drips", "the server did not answer in time", false},
		{"/status", "the server answers with status 418", false},
		{"/loop", "there are more than 5 redirects", false},
		{"/metadata", "a redirect leads to http://169.254.169.254/latest/meta-data: the address 169.254.169.254 is a link-local address", false},
		{
			"/cloud", "a redirect leads to http://metadata.google.internal/: the host metadata.google.internal names a cloud metadata service",
			false,
		},
		{"/file", "a redirect leads to file:///etc/passwd: it is not a URL of http or https", false},
		{"/odd", "a redirect leads to http://2852039166/: the host 2852039166 ends in a number, as addresses do", false},
		{"/issuer/.well-known/openid-configuration", "", true},
		{"/bad/.well-known/openid-configuration", "the address 169.254.169.254 is a link-local address", true},
		{"/relative/.well-known/openid-configuration", "jwks_uri of the OpenID configuration is not a URL of http or https", true},
		{"/html", "the OpenID configuration is not JSON with the text jwks_uri", true},
		{secure.URL, "the certificate of the server is not trusted", false},
		{strings.Replace(server.URL, "http:", "https:", 1), "the server does not use TLS", false},
		{"http://169.254.169.254/", "the address 169.254.169.254 is a link-local address", false},
		{"http://[fd00:ec2::254]/", "the address fd00:ec2::254 is a cloud metadata address", false},
	} {
		uri := at.uri
		if strings.HasPrefix(uri, "/") {
			uri = server.URL + uri
		}
		timeout := time.Minute
		if at.cause == "the server did not answer in time" {
			timeout = time.Second
		}
		keys, err := c.keys(t.Context(), federation.KeySource{URI: uri, OpenID: at.openID}, timeout)
		got := ""
		if err != nil {
			got = cause(err)
		}
		if got != at.cause || (keys == octSet) != (at.cause == "") {
			t.Errorf("%s: the keys are %q, and the cause is %q, want %q", at.uri, keys, got, at.cause)
		}
	}
}

// TestK11TheHubDoesNotCallItself: loopback is for --dev only, and a listener of the hub is never a server
// of keys, by whichever address of this machine.
func TestK11TheHubDoesNotCallItself(t *testing.T) {
	server := httptest.NewServer(says(octSet))
	defer server.Close()
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	everywhere := netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
	for want, policy := range map[string]federation.AddressPolicy{
		"the address 127.0.0.1 is a loopback address":    {},
		"the address 127.0.0.1 is a listener of the hub": {AllowLoopback: true, Own: []netip.AddrPort{at}},
	} {
		c := client{policy: func() federation.AddressPolicy { return policy }}
		_, err := c.keys(t.Context(), federation.KeySource{URI: server.URL}, time.Minute)
		if err == nil || cause(err) != want {
			t.Errorf("the cause is %v, want %s", err, want)
		}
	}
	c := client{policy: func() federation.AddressPolicy { return federation.AddressPolicy{AllowLoopback: true} }}
	conn, err := c.dial(context.Background(), "tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !isOwn(conn, federation.AddressPolicy{Own: []netip.AddrPort{everywhere}}) {
		t.Error("a listener on all addresses is not one of the hub")
	}
}
