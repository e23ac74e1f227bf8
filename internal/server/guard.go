package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// GuardOptions say who may use a handler through a browser.
type GuardOptions struct {
	Hosts []string // Names or addresses without a port by which the server is reached; loopback always may.
	// Origins are those of pages elsewhere that may use the server, such as https://dashboard.example.com.
	Origins []string
	// Refuse answers what is refused, with the status 403; nil: as plain text.
	Refuse func(w http.ResponseWriter, r *http.Request, why string)
}

// Guard keeps web pages of others from using the hub through a visitor's browser (B-G13, B-G14, S36): the Host of every
// request must be a loopback name, a loopback address or one of the hosts, and an Origin, if there is one, must be the
// very host and port that the request goes to, or one of the origins. Only these get CORS headers.
func Guard(next http.Handler, o GuardOptions) http.Handler {
	allowed := map[string]bool{"localhost": true}
	for _, host := range o.Hosts {
		allowed[strings.ToLower(strings.Trim(host, "[]"))] = true
	}
	if o.Refuse == nil {
		o.Refuse = func(w http.ResponseWriter, _ *http.Request, why string) { http.Error(w, why, http.StatusForbidden) }
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !knownHost(r.Host, allowed):
			o.Refuse(w, r, "the Host of the request is not one of this server; name it in graphql.allowedHosts of the hub's config file")
		case fromAllowedOrigin(r, o.Origins):
			allowOrigin(w.Header(), r.Header.Get("Origin"))
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		case !sameOrigin(r):
			o.Refuse(w, r, "the request comes from a page of another origin; name it in graphql.allowedOrigins of the hub's config file")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func fromAllowedOrigin(r *http.Request, origins []string) bool {
	given := r.Header.Values("Origin")
	return len(given) == 1 && slices.ContainsFunc(origins, func(origin string) bool { return strings.EqualFold(origin, given[0]) })
}

// allowOrigin lets a page send operations and read the answers, with the client certificate of its browser.
func allowOrigin(header http.Header, origin string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Credentials", "true")
	header.Set("Access-Control-Allow-Methods", "GET, POST")
	header.Set("Access-Control-Allow-Headers", "Content-Type, Isthmus-Min-Revision, Last-Event-ID")
	header.Set("Access-Control-Expose-Headers", "X-Request-Id, Isthmus-Revision, Retry-After")
	header.Set("Access-Control-Max-Age", "600")
	header.Set("Vary", "Accept, Origin, Sec-Fetch-Site")
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
