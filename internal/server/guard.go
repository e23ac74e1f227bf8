package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Guard keeps web pages of others from using the hub through a visitor's browser (B-G13, B-G14, S36): the Host of every
// request must be a loopback name, a loopback address or one of hosts (names or addresses without a port), and an Origin,
// if there is one, must be the very host and port that the request goes to. No CORS header is ever sent.
func Guard(next http.Handler, hosts ...string) http.Handler {
	allowed := map[string]bool{"localhost": true}
	for _, host := range hosts {
		allowed[strings.ToLower(strings.Trim(host, "[]"))] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !knownHost(r.Host, allowed) {
			http.Error(w, "the Host of the request is not one of this server", http.StatusForbidden)
			return
		}
		if !sameOrigin(r) {
			http.Error(w, "requests of other web sites are refused", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func knownHost(hostPort string, allowed map[string]bool) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	host = strings.ToLower(host)
	return allowed[host] || loopback(host)
}

func sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin, err := url.Parse(origins[0])
	if len(origins) > 1 || err != nil || origin.User != nil || origin.Path != "" {
		return false
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return origin.Scheme == scheme && origin.Host != "" && strings.EqualFold(withPort(origin.Host, scheme), withPort(r.Host, scheme))
}

// withPort adds the port that a scheme implies.
func withPort(hostPort, scheme string) string {
	if _, err := netip.ParseAddrPort(hostPort); err == nil {
		return hostPort
	}
	if _, _, err := net.SplitHostPort(hostPort); err == nil {
		return hostPort
	}
	port := "80"
	if scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(strings.Trim(hostPort, "[]"), port)
}
