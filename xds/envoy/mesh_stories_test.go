package envoy_test

import (
	"bytes"
	"flag"
	"maps"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// meshEndpoint is an endpoint of a story about several networks. Where a port of
// the service has no number, it is served at its own.
type meshEndpoint struct {
	Address  federation.Address   `json:"address"`
	Network  federation.NetworkID `json:"network"`
	Account  string               `json:"account"`
	TLSMode  string               `json:"tlsMode"`
	Labels   map[string]string    `json:"labels"`
	Ports    map[string]uint16    `json:"ports"`
	Workload string               `json:"workload"`
	Hostname string               `json:"hostname"`
	Locality string               `json:"locality"` // region/zone/sub-zone
}

type meshService struct {
	Host       federation.Hostname   `json:"host"`
	Namespace  string                `json:"namespace"`
	Ports      []federation.Port     `json:"ports"`
	VIPs       []netip.Prefix        `json:"vips"`
	Resolution federation.Resolution `json:"resolution"`
	External   bool                  `json:"external"`
	ExportTo   []string              `json:"exportTo"`
	Accounts   []string              `json:"accounts"`
	Endpoints  []meshEndpoint        `json:"endpoints"`
}

// meshStory is a txtar archive: clusters.yaml has the spec of each cluster,
// services/CLUSTER.yaml what it says, config.yaml objects, and proxies.yaml the
// nodes whose wanted sections want/PROXY/TYPE.yaml and want/PROXY/reasons.txt are
// there; -update rewrites those.
type meshStory struct {
	path    string
	archive *txtar.Archive
	world   *world
	proxies map[string]envoy.Node
}

func readMeshStory(t *testing.T, file string) *meshStory {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &meshStory{path: file, archive: archive, world: newWorld(), proxies: map[string]envoy.Node{}}
	for _, f := range archive.Files {
		switch {
		case f.Name == "clusters.yaml":
			var clusters map[federation.ClusterID]federation.ClusterSpec
			s.read(t, f, &clusters)
			s.world.apply(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Set: clusters}})
		case f.Name == "config.yaml":
			s.world.config(t, string(f.Data))
		case f.Name == "proxies.yaml":
			var proxies []struct {
				Name, ID, Locality string
				Metadata           map[string]any
			}
			s.read(t, f, &proxies)
			for _, p := range proxies {
				s.proxies[p.Name] = parseAt(t, p.ID, p.Locality, p.Metadata)
			}
		case path.Dir(f.Name) == "services":
			var services []meshService
			s.read(t, f, &services)
			for _, told := range services {
				s.world.say(federation.ClusterID(strings.TrimSuffix(path.Base(f.Name), ".yaml")), federation.ServiceKey{Hostname: told.Host, Namespace: told.Namespace}, told.shard())
			}
		case strings.HasPrefix(f.Name, "want/"):
		default:
			t.Fatalf("%s: nobody reads section %q", file, f.Name)
		}
	}
	return s
}

func (s *meshStory) read(t *testing.T, f txtar.File, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(f.Data, into); err != nil {
		t.Fatalf("%s: %s: %v", s.path, f.Name, err)
	}
}

func (m meshService) shard() *federation.Shard {
	shard := &federation.Shard{
		Ports: m.Ports, VIPs: m.VIPs, Resolution: m.Resolution, MeshExternal: m.External, ExportTo: m.ExportTo, ServiceAccounts: m.Accounts,
	}
	for _, e := range m.Endpoints {
		out := federation.Endpoint{
			Address: e.Address, Network: e.Network, ServiceAccount: e.Account, TLSMode: e.TLSMode, Labels: e.Labels, Workload: e.Workload, Hostname: e.Hostname,
			Locality: locality(e.Locality),
		}
		for _, p := range m.Ports {
			number := p.Number
			if other, ok := e.Ports[p.Name]; ok {
				number = other
			}
			out.Ports = append(out.Ports, federation.EndpointPort{Name: p.Name, Number: number})
		}
		shard.Endpoints = append(shard.Endpoints, out)
	}
	return shard
}

func (s *meshStory) check(t *testing.T, built map[envoy.Type][]builtResource, section string) {
	t.Helper()
	for i, f := range s.archive.Files {
		if f.Name != section {
			continue
		}
		got := meshReasons(built)
		if typ, ok := sectionTypes["want/"+path.Base(section)]; ok {
			got = render(t, withoutStatic(built[typ]))
		}
		got = append(bytes.TrimSpace(got), '\n')
		if flag.Lookup("update").Value.String() == "true" {
			s.archive.Files[i].Data = got
			if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(string(bytes.TrimSpace(f.Data)), string(bytes.TrimSpace(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", section, diff)
		}
	}
}

// withoutStatic leaves out the clusters that every sidecar has.
func withoutStatic(all []builtResource) []builtResource {
	return slices.DeleteFunc(slices.Clone(all), func(r builtResource) bool { return strings.HasSuffix(r.name, "Cluster") || r.name == "virtualOutbound" })
}

func meshReasons(built map[envoy.Type][]builtResource) []byte {
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

// What proxies of several networks get is what the stories tell, and a real Envoy
// takes all of it.
func TestMeshStories(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "mesh", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the stories: %v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			s := readMeshStory(t, file)
			for _, name := range slices.Sorted(maps.Keys(s.proxies)) {
				built := buildAll(t, s.proxies[name], s.world.snapshot)
				checkReferences(t, s.proxies[name], built)
				for _, section := range []string{"clusters.yaml", "endpoints.yaml", "listeners.yaml", "routes.yaml", "reasons.txt"} {
					s.check(t, built, path.Join("want", name, section))
				}
				if err := testbed.ValidateEnvoy(t, bootstrap(t, built)); err != nil {
					t.Errorf("the proxy %s: %v", name, err)
				}
			}
		})
	}
}
