package settings

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkHosts refuses what can be no host of a request.
func (c graphqlConfig) checkHosts() error {
	for i, host := range c.AllowedHosts {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			continue
		}
		if len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0 {
			return fmt.Errorf("graphql.allowedHosts[%d]: %q is not a name or an address, such as hub.example.com; write it without scheme and port",
				i, host)
		}
	}
	for i, origin := range c.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != origin ||
			strings.Contains(u.Host, "*") {
			return fmt.Errorf("graphql.allowedOrigins[%d]: %q is not an origin, such as https://dashboard.example.com; write it without a path, and each one in full", i, origin)
		}
	}
	return nil
}
