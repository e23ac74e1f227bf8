package xds

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// real is a hub on a unix socket and an Envoy in a namespace of its own.
type real struct {
	t      *testing.T
	writer *federation.Writer
	fleet  *fleet.Fleet
	server *Server
	socket string
	stop   func()
	envoy  *testbed.Envoy
	mu     sync.Mutex
	sent   []envoy.Type
}

// Count notes what is sent.
func (r *real) Count(e Event, t envoy.Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e == Sent {
		r.sent = append(r.sent, t)
	}
}

// Answered is of no interest.
func (r *real) Answered(envoy.Type, time.Duration) {}

const bootstrap = `
node: {id: NODE, cluster: web, metadata: {CLUSTER_ID: c1, NAMESPACE: shop, INTERCEPTION_MODE: REDIRECT}}
dynamic_resources:
  ads_config: {api_type: API, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: hub}}]}
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - name: hub
    type: STATIC
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: hub, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: SOCKET}}}}]}]}
`

// newReal starts both; clusters named bad are ones that Envoy refuses.
func newReal(t *testing.T, delta bool, services ...serviceDelta) *real {
	dir, err := os.MkdirTemp("", "xds")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	a := federation.NewAggregate(nil)
	r := &real{t: t, writer: a.Open(source1), fleet: fleet.New(), socket: filepath.Join(dir, "hub")}
	r.set(services...)
	r.server = New(Options{Snapshots: a, Fleet: r.fleet, Metrics: r, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), builder: refusable()})
	r.serve()
	t.Cleanup(func() { r.stop() })
	api := "GRPC"
	if delta {
		api = "DELTA_GRPC"
	}
	config := strings.NewReplacer("NODE", node("web-1").Id, "API", api, "SOCKET", r.socket).Replace(bootstrap)
	r.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "xds", Config: []byte(config), Namespace: testbed.NewNamespace(t, "xds")})
	r.envoy.WaitReady(patience)
	return r
}

func refusable() *builder {
	made := envoyBuilder
	made.build = func(t envoy.Type, name string, f envoy.Facet, reader *federation.Reader) (proto.Message, []envoy.Reason, error) {
		m, reasons, err := envoy.Build(t, name, f, reader)
		if c, ok := m.(*clusterv3.Cluster); ok && strings.HasPrefix(name, cluster("bad")) {
			c.EdsClusterConfig.EdsConfig = nil // accepted by every rule of the schema
		}
		return m, reasons, err
	}
	made.validate = func(m proto.Message) error {
		if nameOf(m) == cluster("bad") {
			return nil
		}
		return envoy.Validate(m)
	}
	return &made
}

// serve listens; stop ends every stream.
func (r *real) serve() {
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	os.Chmod(r.socket, 0o777)
	g := grpc.NewServer(r.server.ServerOptions()...)
	r.server.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	r.stop = sync.OnceFunc(func() { g.Stop(); <-served })
}

func (r *real) set(services ...serviceDelta) {
	for _, s := range services {
		r.writer.Update(federation.Edit{Services: s})
	}
}

// within waits until the check holds, well before Envoy's own limit of 15 s.
func (r *real) within(what string, check func() error) {
	r.t.Helper()
	testbed.WaitFor(r.t, 10*time.Second, what, check)
}

// clusters are the names of the services' clusters that Envoy has.
func (r *real) clusters() []string {
	var all struct {
		Statuses []struct{ Name string } `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(r.envoy.Clusters(), &all); err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, c := range all.Statuses {
		if strings.HasPrefix(c.Name, "outbound|") {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (r *real) hasClusters(names ...string) func() error {
	slices.Sort(names)
	return func() error {
		if got := r.clusters(); !slices.Equal(got, names) {
			return fmt.Errorf("it has %q, want %q", got, names)
		}
		return nil
	}
}

// settled tells that all is accepted and nothing warms.
func (r *real) settled() error {
	for p := range r.fleet.Latest().Proxies() {
		for typ, s := range p.Sync {
			if s.State != fleet.Synced {
				return fmt.Errorf("%s is %s: %s", typ, s.State, s.LastError)
			}
		}
	}
	if n := r.envoy.Stat("cluster_manager.warming_clusters") + r.envoy.Stat("listener_manager.total_listeners_warming"); n != 0 {
		return fmt.Errorf("%d warm", n)
	}
	return nil
}

func (r *real) state(want fleet.State) func() error {
	return func() error {
		for p := range r.fleet.Latest().Proxies() {
			if s := p.Sync[xdstest.CDS]; s.State != want {
				return fmt.Errorf("clusters are %s: %s", s.State, s.LastError)
			}
		}
		return nil
	}
}

func TestX24EnvoyIsServedInOrder(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newReal(t, delta, service("web", 1), tcpService("db", 5))
		r.within("everything to be accepted", r.settled)
		r.mu.Lock()
		defer r.mu.Unlock()
		var first []envoy.Type
		for _, kind := range r.sent {
			if !slices.Contains(first, kind) {
				first = append(first, kind)
			}
		}
		if !slices.Equal(first, pushOrder[:]) {
			t.Errorf("first responses were %v", first)
		}
	})
}

// A changed cluster warms until its endpoints come: X27 delta, X28 SotW. In SotW
// Envoy holds the answer about the cluster back until then: X29.
func TestX27X28X29EnvoyWarmsChangedClustersAtOnce(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newReal(t, delta, service("web", 1))
		r.within("everything to be accepted", r.settled)
		before := r.envoy.Stat("cluster_manager.cluster_modified") + r.envoy.Stat("cluster_manager.cluster_updated")
		r.set(changedCluster())
		r.within("the change to be in force", func() error {
			if now := r.envoy.Stat("cluster_manager.cluster_modified") + r.envoy.Stat("cluster_manager.cluster_updated"); now == before {
				return fmt.Errorf("no cluster changed")
			}
			return r.settled()
		})
		r.set(service("web", 1), service("new", 2))
		r.within("the new cluster", r.hasClusters(cluster("web"), cluster("new")))
		r.within("everything to be accepted", r.settled)
	})
}

func TestX30EnvoyGetsRoutesForARecreatedListener(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r := newReal(t, delta, service("web", 1), tcpService("db", 5))
		r.within("everything to be accepted", r.settled)
		for range 2 {
			r.set(gone("web"))
			r.within("the listener to go", func() error { return r.listeners(3) })
			r.within("the cluster to go", r.hasClusters(dbCluster))
			r.set(service("web", 1))
			r.within("the listener to be back", func() error { return r.listeners(4) })
			r.within("everything to be accepted", r.settled)
		}
	})
}

func (r *real) listeners(want uint64) error {
	if n := r.envoy.Stat("listener_manager.total_listeners_active"); n != want {
		return fmt.Errorf("%d listeners are active", n)
	}
	return nil
}

func TestX03EnvoyHasNoZombieAfterARefusal(t *testing.T) {
	r := newReal(t, true, service("web", 1))
	r.within("everything to be accepted", r.settled)
	d := service("bad", 2)
	d.Set[key("good")] = httpShard(3)
	r.set(d)
	r.within("the refusal to be shown", r.state(fleet.Nacked))
	r.within("the good cluster", r.hasClusters(cluster("web"), cluster("good")))
	r.within("the repair to be accepted", func() error {
		s := r.fleet.Latest().ByID(node("web-1").Id)[0].Sync[xdstest.CDS]
		if s.VersionAcked != s.VersionSent {
			return fmt.Errorf("sent %s, accepted %s", s.VersionSent, s.VersionAcked)
		}
		return nil
	})
	r.stop()
	r.set(gone("good", "bad"))
	r.serve()
	r.within("the zombie to go", r.hasClusters(cluster("web")))
	r.within("everything to be accepted", r.settled)
}

func TestX04EnvoyAndHubAgreeAfterARefusal(t *testing.T) {
	r := newReal(t, false, service("web", 1), service("old", 2))
	r.within("everything to be accepted", r.settled)
	d := service("bad", 2)
	d.Gone = gone("old").Gone
	r.set(d)
	r.within("the refusal to be shown", r.state(fleet.Nacked))
	r.within("the old cluster to go", r.hasClusters(cluster("web")))
	r.set(gone("bad"))
	r.within("everything to be accepted", r.settled)
}
