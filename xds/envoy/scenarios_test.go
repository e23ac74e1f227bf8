package envoy_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/xds/envoy"
)

// What proxies get is what the scenarios tell, and a real Envoy takes all of it. That
// gRPC takes what is for its clients is tested with its own client, in xds. Envoys mostly wait
// while they start, so they judge at the end, some at once, and each bootstrap once.
func TestScenarios(t *testing.T) {
	proxies := map[string]string{} // by their bootstrap
	federationtest.Each(t, func(t *testing.T, s *federationtest.Scenario) {
		for _, proxy := range s.Proxies {
			n := nodeOf(t, proxy)
			built := buildAll(t, n, s.Snapshot())
			checkReferences(t, n, built)
			assembledAlike(t, n, s.Snapshot())
			for typ, section := range map[envoy.Type]string{
				envoy.ClusterType: "clusters", envoy.EndpointType: "endpoints",
				envoy.ListenerType: "listeners", envoy.RouteType: "routes", envoy.NamesType: "names",
			} {
				name := path.Join("want/xds", proxy.Name, section+".yaml")
				want, _ := s.Section(name)
				s.Compare(t, name, render(t, compared(built[typ], want)))
			}
			s.Compare(t, path.Join("want/xds", proxy.Name, "reasons.txt"), reasonsOf(built))
			if n.GRPC {
				continue
			}
			if len(proxy.Extensions) > 0 {
				proxy.Extensions = nil // the Envoy at hand has none of them: it gets what is the same without
				built = buildAll(t, nodeOf(t, proxy), s.Snapshot())
			}
			config := string(bootstrap(t, built))
			if _, known := proxies[config]; !known {
				_, scenario, _ := strings.Cut(t.Name(), "/")
				proxies[config] = path.Join(scenario, proxy.Name)
			}
		}
	})
	for config, proxy := range proxies {
		t.Run(proxy, func(t *testing.T) {
			t.Parallel()
			if err := testbed.ValidateEnvoy(t, withProxyFiles(t, []byte(config))); err != nil {
				t.Error(err)
			}
		})
	}
}

func nodeOf(t fataler, proxy federationtest.Proxy) envoy.Node {
	t.Helper()
	l := proxy.Locality()
	var extensions []*corev3.Extension
	for _, name := range proxy.Extensions {
		extensions = append(extensions, &corev3.Extension{Name: name})
	}
	n, err := envoy.ParseNode(&corev3.Node{
		Id: proxy.ID, Metadata: fields(t, proxy.Metadata), Locality: &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone},
		Extensions: extensions,
	})
	if err != nil {
		t.Fatalf("proxy %s: %v", proxy.Name, err)
	}
	return n
}

// compared excludes the clusters and listeners that every proxy has, unless the
// scenario wants them.
func compared(all []builtResource, want []byte) []builtResource {
	return slices.DeleteFunc(slices.Clone(all), func(r builtResource) bool {
		everywhere := strings.HasPrefix(r.name, "virtual") || strings.HasSuffix(r.name, "Cluster")
		return everywhere && !bytes.Contains(want, []byte("name: "+r.name+"\n"))
	})
}

// reasonsOf has what is missing in resources, and why.
func reasonsOf(built map[envoy.Type][]builtResource) []byte {
	var b bytes.Buffer
	for _, typ := range allTypes {
		for _, r := range built[typ] {
			for _, reason := range r.reasons {
				b.WriteString(r.name + ": " + reason.Code + " " + reason.Message + "\n")
			}
		}
	}
	return b.Bytes()
}

// withProxyFiles puts real files in the place of those that the scenarios expect
// on the proxy.
func withProxyFiles(t *testing.T, config []byte) []byte {
	t.Helper()
	if !bytes.Contains(config, []byte("/etc/proxy/")) {
		return config
	}
	dir, authority := t.TempDir(), testbed.NewAuthority(t, "scenarios")
	cert, key := authority.Issue(testbed.Subject{Name: "client"})
	for name, content := range map[string][]byte{"cert.pem": cert, "key.pem": key, "ca.pem": authority.PEM} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.ReplaceAll(config, []byte("/etc/proxy/"), []byte(dir+"/"))
}
