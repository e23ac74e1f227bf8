package envoy_test

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// story is a txtar archive of
//
//	proxy.yaml           id and metadata; absent: a sidecar in the namespace shop
//	services.yaml        services of one cluster
//	config.yaml          manifests
//	want/TYPE.yaml       clusters, endpoints, listeners, routes: of these that are there
//	want/reasons.txt     why something of a route configuration was left out
//
// With -update the tests rewrite what is wanted.
type story struct {
	name    string
	path    string
	archive *txtar.Archive
	proxy   envoy.Node
	world   *world
}

type toldService struct {
	Host      federation.Hostname `json:"host"`
	Namespace string              `json:"namespace"`
	Ports     []federation.Port   `json:"ports"`
	VIPs      []netip.Prefix      `json:"vips"`
	ExportTo  []string            `json:"exportTo"`
	Endpoints []netip.Addr        `json:"endpoints"`
}

func stories(t *testing.T, folder string) []*story {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the stories: %v, %d files", err, len(files))
	}
	var all []*story
	for _, file := range files {
		all = append(all, readStory(t, file))
	}
	return all
}

func readStory(t *testing.T, file string) *story {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), path: file, archive: archive, proxy: client(t)}
	s.world = newWorld().attach("c1", "")
	for _, f := range archive.Files {
		switch f.Name {
		case "proxy.yaml":
			var p struct {
				ID       string         `json:"id"`
				Metadata map[string]any `json:"metadata"`
			}
			s.read(t, f, &p)
			s.proxy = parse(t, p.ID, p.Metadata)
		case "services.yaml":
			var services []toldService
			s.read(t, f, &services)
			s.serve(services)
		case "config.yaml":
			s.world.config(t, string(f.Data))
		case "want/clusters.yaml", "want/endpoints.yaml", "want/listeners.yaml", "want/routes.yaml", "want/reasons.txt":
		default:
			t.Fatalf("%s: nobody reads section %q", file, f.Name)
		}
	}
	return s
}

func (s *story) read(t *testing.T, f txtar.File, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(f.Data, into); err != nil {
		t.Fatalf("%s: %s: %v", s.path, f.Name, err)
	}
}

func (s *story) serve(services []toldService) {
	for _, told := range services {
		shard := &federation.Shard{Ports: told.Ports, VIPs: told.VIPs, ExportTo: told.ExportTo}
		for i, addr := range told.Endpoints {
			e := federation.Endpoint{Address: federation.IPAddress(addr), Labels: map[string]string{"version": []string{"v1", "v2", "v3"}[i%3]}}
			for _, p := range told.Ports {
				e.Ports = append(e.Ports, federation.EndpointPort{Name: p.Name, Number: p.Number})
			}
			shard.Endpoints = append(shard.Endpoints, e)
		}
		s.world.say("c1", federation.ServiceKey{Hostname: told.Host, Namespace: told.Namespace}, shard)
	}
}

// compare checks a section, or writes it with -update.
func (s *story) compare(t *testing.T, section string, got []byte) {
	t.Helper()
	got = append(bytes.TrimSpace(got), '\n')
	for i, f := range s.archive.Files {
		if f.Name != section {
			continue
		}
		if flag.Lookup("update").Value.String() == "true" {
			s.archive.Files[i].Data = got
			if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(strings.TrimSpace(string(f.Data)), strings.TrimSpace(string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", section, diff)
		}
	}
}

var sectionTypes = map[string]envoy.Type{
	"want/clusters.yaml": envoy.ClusterType, "want/endpoints.yaml": envoy.EndpointType, "want/listeners.yaml": envoy.ListenerType, "want/routes.yaml": envoy.RouteType,
}

func (s *story) check(t *testing.T) map[envoy.Type][]builtResource {
	built := buildAll(t, s.proxy, s.world.snapshot)
	checkReferences(t, s.proxy, built)
	for section, typ := range sectionTypes {
		s.compare(t, section, render(t, ofServices(built[typ])))
	}
	var reasons []string
	for _, typ := range []envoy.Type{envoy.ListenerType, envoy.RouteType} {
		for _, r := range built[typ] {
			for _, reason := range r.reasons {
				reasons = append(reasons, r.name+": "+reason.Code+" "+reason.Message)
			}
		}
	}
	s.compare(t, "want/reasons.txt", []byte(strings.Join(reasons, "\n")))
	return built
}

// ofServices leaves out what is the same in every story.
func ofServices(all []builtResource) []builtResource {
	var some []builtResource
	for _, r := range all {
		if !strings.HasPrefix(r.name, "virtual") && !strings.HasSuffix(r.name, "Cluster") {
			some = append(some, r)
		}
	}
	return some
}

// What VirtualServices become is what the stories tell, and a real Envoy takes
// it.
func TestVirtualServiceStories(t *testing.T) {
	routes := map[envoy.Type][]builtResource{}
	for _, s := range stories(t, "virtualservice") {
		t.Run(s.name, func(t *testing.T) {
			built := s.check(t)
			if _, has := section(s.archive, "want/listeners.yaml"); has {
				if err := testbed.ValidateEnvoy(t, bootstrap(t, built)); err != nil {
					t.Error(err)
				}
				return
			}
			for _, r := range built[envoy.RouteType] {
				r.message.(*routev3.RouteConfiguration).Name = s.name + " " + r.name
				r.name = s.name + " " + r.name
				routes[envoy.RouteType] = append(routes[envoy.RouteType], r)
			}
		})
	}
	if err := testbed.ValidateEnvoy(t, bootstrap(t, routes)); err != nil {
		t.Error(err)
	}
}

func section(archive *txtar.Archive, name string) ([]byte, bool) {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return nil, false
}

// TestR27AnAddedHostReplacesTheRequests: a request has one host.
func TestR27AnAddedHostReplacesTheRequests(t *testing.T) {
	w := newWorld().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080))).config(t, `kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{headers: {request: {add: {Host: other.example}}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]`)
	c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), w.snapshot), "80")
	if route := c.GetVirtualHosts()[0].GetRoutes()[0]; route.GetRoute().GetHostRewriteLiteral() != "other.example" || len(route.GetRequestHeadersToAdd()) > 0 {
		t.Errorf("the route is %v", route)
	}
}
