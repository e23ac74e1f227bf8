package bootstrap

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// options are those of a proxy with certificates in a folder.
func options(t *testing.T, kind Kind) Options {
	t.Helper()
	dir, ca := t.TempDir(), testbed.NewAuthority(t, "ca")
	cert, key := ca.Issue(testbed.Subject{Name: "web-1"})
	for name, text := range map[string][]byte{"ca.pem": ca.PEM, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Options{
		Kind: kind, Name: "web-1", Namespace: "shop", ServiceAccount: "web", Cluster: "c1", Network: "n1",
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")}, Labels: map[string]string{"app": "web"},
		Region: "eu", Zone: "eu-1", Hub: Endpoint{Host: "hub.example", Port: 15010},
		HubCA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"),
		Admin: Endpoint{Host: "127.0.0.1", Port: 15000},
	}
}

func build(t *testing.T, o Options) []byte {
	t.Helper()
	b, err := Build(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := YAML(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// S55: a real Envoy takes every bootstrap, and the hub understands its node.
func TestS55EnvoyTakesTheBootstraps(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"files":    func(*Options) {},
		"followed": func(o *Options) { o.Secrets = t.TempDir() },
		"socket": func(o *Options) {
			o.Hub, o.HubCA = Endpoint{Path: "/run/isthmus/xds"}, ""
			o.Certificate, o.Key = "", ""
			o.Admin = Endpoint{Path: filepath.Join(t.TempDir(), "admin")}
		},
		"address": func(o *Options) { o.HubName, o.Admin = "10.0.0.5", Endpoint{} },
	} {
		for _, kind := range []Kind{Sidecar, Gateway, SNIDNAT} {
			o := options(t, kind)
			change(&o)
			files, err := SecretFiles(o)
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(o.Secrets, file), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := testbed.ValidateEnvoy(t, build(t, o)); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}

func TestTheHubUnderstandsTheNode(t *testing.T) {
	for kind, want := range map[Kind]string{
		Sidecar: "sidecar standard capture=true", Gateway: "router standard capture=false", SNIDNAT: "router sni-dnat capture=false",
	} {
		o := options(t, kind)
		o.DNSCapture, o.HTTPProxyPort = true, 15080
		b, err := Build(o)
		if err != nil {
			t.Fatal(err)
		}
		n, err := node.ParseNode(b.GetNode(), node.Given{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s capture=%t", n.Type, n.RouterMode, n.Capture); got != want {
			t.Errorf("%s: %s", kind, got)
		}
		if n.Cluster != "c1" || n.Namespace != "shop" || n.ServiceAccount != "web" || n.Network != "n1" || len(n.Addresses) != 2 ||
			n.Labels["app"] != "web" || n.Locality.Zone != "eu-1" || n.Name != "web-1.shop" || !n.DNSCapture || n.HTTPProxyPort != 15080 ||
			!n.Delimited {
			t.Errorf("%s: the node is %+v", kind, n)
		}
	}
}

// S55: what keeps an Envoy from being overrun is there, in every kind.
func TestS55BootstrapsAreHardened(t *testing.T) {
	for _, kind := range []Kind{Sidecar, Gateway, SNIDNAT} {
		text := string(build(t, options(t, kind)))
		for _, want := range []string{
			"envoy.resource_monitors.fixed_heap", "envoy.resource_monitors.global_downstream_max_connections",
			"stop_accepting_connections", "per_connection_buffer_limit_bytes: 32768", "initial_stream_window_size: 65536",
			"initial_connection_window_size: 1048576", "max_concurrent_streams: 100", "connection_keepalive",
			"tls_minimum_protocol_version: TLSv1_2",
			"match_typed_subject_alt_names", "exact: hub.example", "address: 127.0.0.1",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s", kind, want)
			}
		}
		if strings.Contains(text, "PRIVATE KEY") {
			t.Error("the bootstrap has a key")
		}
	}
}

// P29: gateways probe for the hub, and sidecars do not.
func TestP29GatewaysProbe(t *testing.T) {
	for kind, want := range map[Kind]bool{Sidecar: false, Gateway: true, SNIDNAT: true} {
		b, err := Build(options(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		services := b.GetHdsConfig().GetGrpcServices()
		if got := len(services) == 1 &&
			services[0].GetEnvoyGrpc().GetClusterName() == b.GetStaticResources().GetClusters()[0].GetName(); got != want {
			t.Errorf("%s probes: %t, want %t", kind, got, want)
		}
	}
}

func TestBootstrapsThatAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"type: use":             func(o *Options) { o.Kind = "ingress" },
		"name: is missing":      func(o *Options) { o.Name = "" },
		"namespace: is":         func(o *Options) { o.Namespace = "a~b" },
		"cluster-id: is":        func(o *Options) { o.Cluster = "" },
		"ip: name":              func(o *Options) { o.Addresses = nil },
		"hub: use":              func(o *Options) { o.Hub = Endpoint{Host: "hub.example"} },
		"give all three":        func(o *Options) { o.Key = "" },
		"hub: plaintext":        func(o *Options) { o.HubCA, o.Certificate, o.Key = "", "", "" },
		"admin: use a loopback": func(o *Options) { o.Admin = Endpoint{Host: "0.0.0.0", Port: 15000} },
	} {
		o := options(t, Sidecar)
		change(&o)
		if _, err := Build(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
