package gateway_test

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/gateway"
)

// TestProtocolsOfServers: what connections to the port of a server speak, or why a gateway cannot serve it.
func TestProtocolsOfServers(t *testing.T) {
	ends := &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE}
	for name, test := range map[string]struct {
		protocol string
		tls      *networking.ServerTLSSettings
		want     gateway.ServerProtocol
		why      string
		web      bool // the server translates gRPC-Web
	}{
		"HTTP":                       {protocol: "HTTP", want: gateway.ServesHTTP},
		"HTTP/2, in lower case":      {protocol: "http2", want: gateway.ServesHTTP},
		"HTTP that leads to HTTPS":   {protocol: "HTTP", tls: &networking.ServerTLSSettings{HttpsRedirect: true}, want: gateway.ServesHTTP},
		"gRPC":                       {protocol: "GRPC", want: gateway.ServesHTTP},
		"gRPC-Web":                   {protocol: "GRPC-WEB", want: gateway.ServesHTTP, web: true},
		"gRPC-Web, in lower case":    {protocol: "grpc-web", want: gateway.ServesHTTP, web: true},
		"HTTPS":                      {protocol: "HTTPS", tls: ends, want: gateway.ServesTLS},
		"HTTPS without settings":     {protocol: "HTTPS", why: "protocol HTTPS needs tls"},
		"TLS without settings":       {protocol: "tls", why: "protocol TLS needs tls"},
		"bytes":                      {protocol: "TCP", want: gateway.ServesTCP},
		"bytes in TLS":               {protocol: "TCP", tls: ends, want: gateway.ServesTLS},
		"a protocol passed as bytes": {protocol: "MYSQL", want: gateway.ServesTCP},
		"datagrams":                  {protocol: "UDP", want: gateway.ServesUDP},
		"datagrams in TLS":           {protocol: "UDP", tls: ends, why: "protocol UDP has no tls"},
		"a protocol that is unknown": {protocol: "SCTP", why: `protocol "SCTP" is not one that a gateway can serve`},
		"no protocol":                {why: `protocol "" is not one that a gateway can serve`},
	} {
		server := &networking.Server{Port: &networking.Port{Protocol: test.protocol}, Tls: test.tls}
		if got, why := gateway.ServerProtocolOf(server); got != test.want || why != test.why {
			t.Errorf("%s: the server speaks %q, and cannot be served because of %q; want %q, %q", name, got, why, test.want, test.why)
		}
		if got := gateway.TranslatesWeb(server); got != test.web {
			t.Errorf("%s: the server translates gRPC-Web: %t, want %t", name, got, test.web)
		}
	}
}

// TestModesOfTLS: whether the server ends TLS, and whether it passes on connections of other networks.
func TestModesOfTLS(t *testing.T) {
	with := func(mode networking.ServerTLSSettings_TLSmode) *networking.ServerTLSSettings {
		return &networking.ServerTLSSettings{Mode: mode}
	}
	for name, test := range map[string]struct {
		tls             *networking.ServerTLSSettings
		passesOn, bySNI bool
	}{
		"no TLS":                   {nil, true, false},
		"no mode":                  {&networking.ServerTLSSettings{}, true, false},
		"PASSTHROUGH":              {with(networking.ServerTLSSettings_PASSTHROUGH), true, false},
		"AUTO_PASSTHROUGH":         {with(networking.ServerTLSSettings_AUTO_PASSTHROUGH), true, true},
		"SIMPLE":                   {with(networking.ServerTLSSettings_SIMPLE), false, false},
		"MUTUAL":                   {with(networking.ServerTLSSettings_MUTUAL), false, false},
		"OPTIONAL_MUTUAL":          {with(networking.ServerTLSSettings_OPTIONAL_MUTUAL), false, false},
		"the identity of the mesh": {with(networking.ServerTLSSettings_ISTIO_MUTUAL), false, false},
	} {
		server := &networking.Server{Tls: test.tls}
		if passesOn, bySNI := gateway.PassesOn(server), gateway.BySNI(server); passesOn != test.passesOn || bySNI != test.bySNI {
			t.Errorf("%s: passed on: %t, by the name of the server: %t; want %t, %t", name, passesOn, bySNI, test.passesOn, test.bySNI)
		}
	}
}

func TestAddressesOfServers(t *testing.T) {
	for bind, want := range map[string]string{
		"":                  "0.0.0.0",
		"10.0.0.1":          "10.0.0.1",
		"0.0.0.0":           "0.0.0.0",
		"::":                "::",
		"2001:db8::1":       "2001:db8::1",
		"::ffff:10.0.0.1":   "10.0.0.1",
		"fe80::1%eth0":      "not an address",
		"localhost":         "not an address",
		"10.0.0.1:80":       "not an address",
		"10.0.0.0/8":        "not an address",
		"unix:///run/a.sck": "not an address",
	} {
		got := "not an address"
		addr, err := gateway.Bind(&networking.Server{Bind: bind})
		if err == nil {
			got = addr.String()
		} else if addr.IsValid() || !strings.Contains(err.Error(), bind) {
			t.Errorf("%q is refused with %q, and gives %s", bind, err, addr)
		}
		if got != want {
			t.Errorf("a server with bind %q listens at %s, want %s", bind, got, want)
		}
	}
}

// TestHostsOfServers: a host may name the namespace whose VirtualServices bind to it. What is not a host is excluded alone.
func TestHostsOfServers(t *testing.T) {
	for hosts, want := range map[string]string{ // NAMESPACE/HOST; the Gateway is in shop
		"web.example.com":                   "/web.example.com",
		"bank/web.example.com":              "bank/web.example.com",
		"./web.example.com":                 "shop/web.example.com",
		"*/web.example.com":                 "/web.example.com",
		"*":                                 "/*",
		"./*":                               "shop/*",
		"*.example.com":                     "/*.example.com",
		"WEB.Example.com ./API.Example.com": "/web.example.com shop/api.example.com",
		"web.*.com":                         "",
		"bank/":                             "",
		"web.example.com:80":                "",
		"a/b/web.example.com":               "",
		"b.example.com web.*.com bank/a.example.com": "/b.example.com bank/a.example.com",
	} {
		var got []string
		for _, h := range gateway.Hosts(strings.Fields(hosts), "shop") {
			got = append(got, h.Namespace+"/"+h.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("of %q, the hosts are %q, want %q", hosts, got, want)
		}
	}
}

// TestHostsOfVirtualServices: a VirtualService has the narrower of its host and the server's, if its namespace may bind to it.
func TestHostsOfVirtualServices(t *testing.T) {
	for name, test := range map[string]struct {
		server gateway.Host
		host   string // of a VirtualService in shop
		want   string
	}{
		"the same host":             {gateway.Host{Name: "web.example.com"}, "web.example.com", "web.example.com"},
		"another host":              {gateway.Host{Name: "web.example.com"}, "api.example.com", ""},
		"its own namespace":         {gateway.Host{Namespace: "shop", Name: "web.example.com"}, "web.example.com", "web.example.com"},
		"another namespace":         {gateway.Host{Namespace: "bank", Name: "web.example.com"}, "web.example.com", ""},
		"any host of another":       {gateway.Host{Namespace: "bank", Name: "*"}, "web.example.com", ""},
		"below the server's":        {gateway.Host{Name: "*.example.com"}, "web.example.com", "web.example.com"},
		"far below the server's":    {gateway.Host{Name: "*.example.com"}, "a.b.example.com", "a.b.example.com"},
		"the domain itself":         {gateway.Host{Name: "*.example.com"}, "example.com", ""},
		"above the server's":        {gateway.Host{Name: "web.example.com"}, "*.example.com", "web.example.com"},
		"any host":                  {gateway.Host{Name: "*.example.com"}, "*", "*.example.com"},
		"any host at any":           {gateway.Host{Name: "*"}, "*", "*"},
		"a wildcard below another":  {gateway.Host{Name: "*.example.com"}, "*.web.example.com", "*.web.example.com"},
		"a wildcard above another":  {gateway.Host{Name: "*.web.example.com"}, "*.example.com", "*.web.example.com"},
		"wildcards of two domains":  {gateway.Host{Name: "*.example.com"}, "*.example.org", ""},
		"a name that ends the same": {gateway.Host{Name: "*.example.com"}, "badexample.com", ""},
	} {
		if got := test.server.Admitted(test.host, "shop"); got != test.want {
			t.Errorf("%s: a VirtualService for %s has %q of the server %v, want %q", name, test.host, got, test.server, test.want)
		}
	}
}
