package envoy_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// ruledService is a service of a story about DestinationRules.
type ruledService struct {
	Host       federation.Hostname `json:"host"`
	Namespace  string              `json:"namespace"`
	Resolution string              `json:"resolution"`
	Ports      []federation.Port   `json:"ports"`
	Endpoints  []struct {
		Address federation.Address `json:"address"`
		Labels  map[string]string  `json:"labels"`
	} `json:"endpoints"`
}

func (s ruledService) shard(t fataler) *federation.Shard {
	shard := &federation.Shard{Ports: s.Ports}
	for shard.Resolution.String() != s.Resolution && s.Resolution != "" {
		if shard.Resolution++; shard.Resolution > federation.DNSRoundRobinLB {
			t.Fatalf("there is no resolution %q", s.Resolution)
		}
	}
	for _, e := range s.Endpoints {
		endpoint := federation.Endpoint{Address: e.Address, Labels: e.Labels}
		for _, p := range s.Ports {
			endpoint.Ports = append(endpoint.Ports, federation.EndpointPort{Name: p.Name, Number: p.Number})
		}
		shard.Endpoints = append(shard.Endpoints, endpoint)
	}
	return shard
}

// ruleStory is a txtar archive of services.yaml, config.yaml, and of what a
// sidecar in the namespace shop gets: want/clusters.yaml, want/endpoints.yaml and
// want/reasons.txt, which -update rewrites.
type ruleStory struct {
	path    string
	archive *txtar.Archive
	world   *world
}

func readRuleStory(t *testing.T, path string) *ruleStory {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &ruleStory{path: path, archive: archive, world: newWorld().attach("c1", "")}
	for _, f := range archive.Files {
		switch f.Name {
		case "services.yaml":
			var services []ruledService
			if err := yaml.UnmarshalStrict(f.Data, &services); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			for _, told := range services {
				s.world.say("c1", federation.ServiceKey{Hostname: told.Host, Namespace: told.Namespace}, told.shard(t))
			}
		case "config.yaml":
			s.world.config(t, string(f.Data))
		case "want/clusters.yaml", "want/endpoints.yaml", "want/reasons.txt":
		default:
			t.Fatalf("%s: nobody reads section %q", path, f.Name)
		}
	}
	return s
}

func (s *ruleStory) compare(t *testing.T, section string, got []byte) {
	t.Helper()
	got = append(bytes.TrimSpace(got), '\n')
	update := flag.Lookup("update").Value.String() == "true"
	for i, f := range s.archive.Files {
		switch {
		case f.Name != section:
		case update:
			s.archive.Files[i].Data = got
			if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o644); err != nil {
				t.Fatal(err)
			}
		case !bytes.Equal(append(bytes.TrimSpace(f.Data), '\n'), got):
			t.Errorf("%s differs (run with -update to accept)\n--- want\n%s--- got\n%s", section, f.Data, got)
		}
	}
}

// What DestinationRules become is what the stories tell, and a real Envoy takes
// all of it.
func TestDestinationRuleStories(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "destinationrule", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the stories: %v, %d files", err, len(files))
	}
	all := map[envoy.Type][]builtResource{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			s := readRuleStory(t, file)
			built := buildAll(t, client(t), s.world.snapshot)
			checkReferences(t, client(t), built)
			clusters := outboundOnly(built[envoy.ClusterType])
			s.compare(t, "want/clusters.yaml", render(t, clusters))
			s.compare(t, "want/endpoints.yaml", render(t, built[envoy.EndpointType]))
			s.compare(t, "want/reasons.txt", reasonsOf(built))
			for _, r := range clusters {
				r.message.(*clusterv3.Cluster).Name = name + " " + r.name
				all[envoy.ClusterType] = append(all[envoy.ClusterType], r)
			}
		})
	}
	if err := testbed.ValidateEnvoy(t, withProxyFiles(t, bootstrap(t, all))); err != nil {
		t.Error(err)
	}
}

// withProxyFiles puts real files in the place of those that the stories expect
// on the proxy.
func withProxyFiles(t *testing.T, config []byte) []byte {
	t.Helper()
	dir, authority := t.TempDir(), testbed.NewAuthority(t, "stories")
	cert, key := authority.Issue(testbed.Subject{Name: "client"})
	for name, content := range map[string][]byte{"cert.pem": cert, "key.pem": key, "ca.pem": authority.PEM} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.ReplaceAll(config, []byte("/etc/proxy/"), []byte(dir+"/"))
}

func outboundOnly(all []builtResource) []builtResource {
	var some []builtResource
	for _, r := range all {
		if strings.HasPrefix(r.name, "outbound|") {
			some = append(some, r)
		}
	}
	return some
}

func reasonsOf(built map[envoy.Type][]builtResource) []byte {
	var b bytes.Buffer
	for _, typ := range []envoy.Type{envoy.ClusterType, envoy.EndpointType} {
		for _, r := range built[typ] {
			for _, reason := range r.reasons {
				b.WriteString(r.name + ": " + reason.Code + " " + reason.Message + "\n")
			}
		}
	}
	return b.Bytes()
}
