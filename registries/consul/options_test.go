package consul

import (
	"crypto/tls"
	"strings"
	"testing"
)

func TestNewNamesTheWrongField(t *testing.T) {
	good := Options{Cluster: "dc1", Address: "http://consul.example:8500"}
	if _, err := New(good); err != nil {
		t.Fatalf("good options: %v", err)
	}
	for _, c := range []struct {
		field  string
		change func(*Options)
	}{
		{"consul.address", func(o *Options) { o.Address = "" }},
		{"consul.address", func(o *Options) { o.Address = "consul.example:8500" }},
		{"consul.address", func(o *Options) { o.Address = "unix:///run/consul.sock" }},
		{"consul.address", func(o *Options) { o.Address = "http://user:hunter2@consul.example:8500" }},
		{"consul.address", func(o *Options) { o.Address = "http://consul.example:8500/v1?token=hunter2" }},
		{"consul.address", func(o *Options) { o.Address = "http://:8500" }},
		{"consul.address", func(o *Options) { o.Address = "http://hunter2\x7f" }},
		{"consul.tls", func(o *Options) { o.TLS = &tls.Config{MinVersion: tls.VersionTLS12} }},
		{"consul.hostname", func(o *Options) { o.Hostname = "{{.Service" }},
		{"consul.hostname", func(o *Options) { o.Hostname = "same.for.all" }},
		{"consul.hostname", func(o *Options) { o.Hostname = "{{.Service}}.{{.Secret}}" }},
		{"consul.hostname", func(o *Options) { o.Hostname = `{{.Service}}{{printf "%99999999d" 1}}` }},
		{"consul.hostname", func(o *Options) { o.Hostname = "{{range .Service}}{{.}}{{end}}" }},
		{"consul.hostname", func(o *Options) { o.Hostname = "{{.Service}}..consul" }},
		{"consul.hostname", func(o *Options) { o.Hostname = "{{.Service}}.{{.Namespace}}.svc" }},
		{"consul.namespace", func(o *Options) { o.Namespace = "Shop!" }},
		{"identity", func(o *Options) { o.Expect = "nothing" }},
	} {
		o := good
		c.change(&o)
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), c.field) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: error %v, want one that names %s and no secret", o.Address+" "+o.Hostname, err, c.field)
		}
	}
}

func TestHostnamesAndNamespaces(t *testing.T) {
	for _, c := range []struct{ template, namespace, service, want string }{
		{"", "", "web", "web.service.consul"},
		{"", "", "WEB", "web.service.consul"},
		{"", "shop", "web", "shop/web.service.consul"},
		{"{{.Service}}.default.svc.cluster.local", "", "web", "default/web.default.svc.cluster.local"},
		{"{{.Service}}.{{.Namespace}}.svc.cluster.local", "shop", "web", "shop/web.shop.svc.cluster.local"},
		{"{{.Service}}.{{.Datacenter}}.{{.Cluster}}.mesh", "", "web", "web.dc1.c1.mesh"},
		{"", "", "a_b", ""},
		{"", "", "a.b", ""},
		{"", "", "", ""},
		{"", "", "-a", ""},
		{"", "", "..%2f", ""},
		{"", "", "nul\x00", ""},
		{"", "", "größe", ""},
		{"", "", "\u212a", ""},
		{"", "", strings.Repeat("x", 10_000), ""},
		{"{{.Service}}." + strings.Repeat("x.", 100) + "y", "", strings.Repeat("w", 63), ""},
	} {
		key, err := testTranslator(t, Options{Hostname: c.template, Namespace: c.namespace}).names.key(c.service, "dc1")
		if err != nil {
			key.Hostname = ""
		}
		if key.String() != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q with %q is %q (%v), want %q", c.service[:min(20, len(c.service))], c.template, key, err, c.want)
		}
	}
}

func TestIdentitiesOfOneConsulShareAServer(t *testing.T) {
	parse := func(s string) datacenterIdentity {
		id, err := parseIdentity(s)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	old := parse("dc1/a,b,c")
	for other, same := range map[string]bool{"dc1/c,b,a": true, "dc1/c,d,e": true, "dc1/d,e,f": false, "dc2/a,b,c": false} {
		if old.same(parse(other)) != same {
			t.Errorf("%s and %s: same is %v, want %v", old, other, !same, same)
		}
	}
}

// TestR12NoTokenInPlainTextToAnotherMachine: as for etcd; addresses of this machine
// are taken, and so is plain text without a token.
func TestR12NoTokenInPlainTextToAnotherMachine(t *testing.T) {
	token := func() (string, error) { return "hunter2", nil }
	for address, refused := range map[string]bool{
		"http://consul.example:8500": true, "http://10.0.0.1:8500": true, "http://[fd00::1]:8500": true, "http://localhost.example:8500": true,
		"http://localhost:8500": false, "http://127.0.0.1:8500": false, "http://[::1]:8500": false, "https://consul.example:8501": false,
	} {
		_, err := New(Options{Cluster: "dc1", Address: address, Token: token})
		if (err != nil) != refused {
			t.Errorf("%s with a token: %v", address, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "consul.address") || !strings.Contains(err.Error(), "https://")) {
			t.Errorf("%s: the error does not say what to do: %v", address, err)
		}
		if _, err := New(Options{Cluster: "dc1", Address: address}); err != nil {
			t.Errorf("%s without a token: %v", address, err)
		}
	}
}
