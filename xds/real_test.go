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
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
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
	pod    *testbed.Namespace
	mu     sync.Mutex
	events []happened
}

type happened struct {
	event Event
	kind  envoy.Type
}

// Count notes what happens.
func (r *real) Count(e Event, t envoy.Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, happened{e, t})
}

// forget drops the events so far.
func (r *real) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// first is the place of the first such event among those since forget.
func (r *real) first(e Event, t envoy.Type) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Index(r.events, happened{e, t})
}

// counted is how often it happened.
func (r *real) counted(e Event, t envoy.Type) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, h := range r.events {
		if h == (happened{e, t}) {
			n++
		}
	}
	return n
}

// last is the place of the last such event.
func (r *real) last(e Event, t envoy.Type) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, h := range slices.Backward(r.events) {
		if h == (happened{e, t}) {
			return i
		}
	}
	return -1
}

// Answered is of no interest.
func (r *real) Answered(envoy.Type, time.Duration) {}

const bootstrap = `
node: {id: NODE, cluster: web, metadata: {CLUSTER_ID: c1, NAMESPACE: shop, INTERCEPTION_MODE: REDIRECT}}
dynamic_resources:
  ads_config: {api_type: API, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: hub}}]}
  cds_config: {ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s}
  lds_config: {ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s}
static_resources:
  clusters:
  - name: hub
    type: STATIC
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: hub, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: SOCKET}}}}]}]}
`

// newReal starts both; clusters named bad are ones that Envoy refuses. Envoy
// waits forever for its resources, and the hub ends none of its waits early:
// what settles was sent, and did not heal by a timeout.
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
	r.server = New(Options{
		Snapshots: a, Fleet: r.fleet, Metrics: r, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		builder: unhealed(), timing: &patient,
	})
	r.serve()
	t.Cleanup(func() { r.stop() })
	api := "GRPC"
	if delta {
		api = "DELTA_GRPC"
	}
	config := strings.NewReplacer("NODE", node("web-1").Id, "API", api, "SOCKET", r.socket).Replace(bootstrap)
	r.pod = testbed.NewNamespace(t, "xds")
	r.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "xds", Config: []byte(config), Namespace: r.pod})
	r.envoy.WaitReady(3 * patience)
	return r
}

var patient = timing{
	pace: defaultTiming.pace, unanswered: time.Hour, addition: time.Hour, removal: time.Hour, proof: defaultTiming.proof,
	access: defaultTiming.access,
}

// unhealed builds what Envoy awaits for ever, and bad clusters.
func unhealed() *builder {
	made := envoyBuilder
	made.build = func(t envoy.Type, name string, f envoy.Facet, reader *federation.Reader) (proto.Message, []envoy.Reason, error) {
		m, reasons, err := envoy.Build(t, name, f, reader)
		switch m := m.(type) {
		case *clusterv3.Cluster:
			if eds := m.GetEdsClusterConfig(); eds != nil {
				eds.EdsConfig.InitialFetchTimeout = durationpb.New(0)
			}
			if name == cluster("bad") {
				m.EdsClusterConfig.EdsConfig = nil // accepted by every rule of the schema
			}
		case *listenerv3.Listener:
			for _, chain := range m.GetFilterChains() {
				awaitRoutes(chain.GetFilters()[0])
			}
		}
		return m, reasons, err
	}
	made.validate = func(m proto.Message) error {
		if nameOf(m) == cluster("bad") {
			return nil
		}
		return check.Resource(m)
	}
	return &made
}

func awaitRoutes(f *listenerv3.Filter) {
	m, err := f.GetTypedConfig().UnmarshalNew()
	manager, ok := m.(*hcmv3.HttpConnectionManager)
	if err != nil || !ok || manager.GetRds() == nil {
		return
	}
	manager.GetRds().GetConfigSource().InitialFetchTimeout = durationpb.New(0)
	f.GetTypedConfig().MarshalFrom(manager)
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

// await waits until the check holds.
func (r *real) await(what string, check func() error) {
	r.t.Helper()
	testbed.WaitFor(r.t, 3*patience, what, check)
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

// inSync fails unless everything is accepted and nothing is warming.
func (r *real) inSync() error {
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

// accepted fails unless Envoy accepted the last response of the type.
func (r *real) accepted(kind string) func() error {
	return func() error {
		for p := range r.fleet.Latest().Proxies() {
			if s := p.Sync[kind]; s.VersionAcked != s.VersionSent {
				return fmt.Errorf("sent %s, accepted %s", s.VersionSent, s.VersionAcked)
			}
		}
		return nil
	}
}

// changes counts the clusters that Envoy took the place of.
func (r *real) changes() uint64 {
	return r.envoy.Stat("cluster_manager.cluster_modified") + r.envoy.Stat("cluster_manager.cluster_updated")
}

func (r *real) listeners(want uint64) error {
	if n := r.envoy.Stat("listener_manager.total_listeners_active"); n != want {
		return fmt.Errorf("%d listeners are active", n)
	}
	return nil
}
