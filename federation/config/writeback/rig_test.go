package writeback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/ingress"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/writeback"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loaded = sync.OnceValues(func() (*schema.Set, error) { return schema.Load(kind.Expressions) })

// leader says whether a hub writes.
type leader struct {
	mu      sync.Mutex
	leads   bool
	asked   int
	changed chan struct{}
}

func (o *leader) Leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	return o.leads
}

func (o *leader) asks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

func (o *leader) Changed() <-chan struct{} { return o.changed }

func (o *leader) set(leads bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leads = leads
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// proxies are what a test says about them.
type proxies struct {
	mu       sync.Mutex
	changed  chan struct{}
	told     bool                        // since News was called
	findings map[string][]wanted.Finding // by name of the object
	delivery wanted.Delivery
	missing  map[string]string // why Secrets are, by CLUSTER/NAMESPACE/NAME
	followed map[string]int    // Secrets, by the same
}

func (p *proxies) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (*proxies) OtherHubs() int { return 0 }

func (p *proxies) News() wanted.News {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.told
	p.told = false
	return wanted.News{All: all}
}

func (p *proxies) Findings(_ *federation.Snapshot, _ *federation.Reader, key federation.ObjectKey) []wanted.Finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.findings[key.Name]
}

func (p *proxies) Follow(cluster federation.ClusterID, secret gatewayapi.Secret) (done func()) {
	title := string(cluster) + "/" + secret.Namespace + "/" + secret.Name
	count := func(by int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.followed[title] += by
	}
	count(1)
	return func() { count(-1) }
}

// follows is how often a Secret is followed.
func (p *proxies) follows(title string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.followed[title]
}

func (p *proxies) MissingSecret(_ *federation.Reader, cluster federation.ClusterID, secret gatewayapi.Secret) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	title := string(cluster) + "/" + secret.Namespace + "/" + secret.Name
	if p.followed[title] == 0 {
		return ""
	}
	return p.missing[title]
}

func (p *proxies) Delivered(*federation.Snapshot, ...federation.ObjectKey) (wanted.Delivery, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delivery, true
}

func (p *proxies) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.told = true
	close(p.changed)
	p.changed = make(chan struct{})
}

// counts are the writes of a hub.
type counts struct {
	mu            sync.Mutex
	wrote, failed int
}

func (c *counts) StatusWrote(string)          { c.mu.Lock(); defer c.mu.Unlock(); c.wrote++ }
func (c *counts) StatusFailed(string, string) { c.mu.Lock(); defer c.mu.Unlock(); c.failed++ }

func (c *counts) now() (wrote, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrote, c.failed
}

// rig is a hub that writes status.
type rig struct {
	t         *testing.T
	snapshots *federation.Aggregate
	views     *config.Aggregate
	settings  *memory.Store
	revision  int64
	leader    *leader
	proxies   *proxies
	counts    *counts
	operator  *federation.Writer
	registry  *federation.Writer
	sources   []interface {
		Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster)
	}
	ctx   context.Context //nolint:containedctx // of the test
	stop  func()
	ended sync.WaitGroup
}

// newRig starts a hub that reads and writes the cluster c1.
func newRig(t *testing.T, access testbed.Access, leads bool) *rig {
	t.Helper()
	o := &leader{leads: leads, changed: make(chan struct{}, 1)}
	r := startRig(t, access, o)
	r.leader = o
	return r
}

func startRig(t *testing.T, access testbed.Access, leader writeback.Leader) *rig {
	t.Helper()
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	r := &rig{
		t: t, snapshots: federation.NewAggregate(nil), settings: memory.New(federation.MeshSettingsKind), counts: &counts{},
		proxies: &proxies{changed: make(chan struct{}), findings: map[string][]wanted.Finding{}, followed: map[string]int{}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = ctx
	writer := writeback.New(writeback.Options{
		Snapshots: r.snapshots, Leader: leader, Meter: r.counts, Pace: 20 * time.Millisecond,
		Pause: 20 * time.Millisecond, Logger: quiet,
	})
	custom := crd.New(crd.Options{
		Kinds: set.Kinds(), Schema: kind.Schema{Set: set, Newer: true}, Snapshots: r.snapshots,
		Look: 300 * time.Millisecond, Originals: writer, Logger: quiet,
	})
	read := crd.New(crd.Options{
		Kinds: ingress.Kinds, Schema: ingress.Schema{}, Everywhere: ingress.Wanted, Snapshots: r.snapshots,
		Look: 300 * time.Millisecond, Originals: writer, Logger: quiet,
	})
	ingresses := ingress.New(ingress.Options{Snapshots: r.snapshots, Reader: read, Logger: quiet})
	gateways := gatewayapi.New(gatewayapi.Options{Snapshots: r.snapshots, Logger: quiet})
	in := config.Options{Hub: "hub"}
	r.views = config.NewAggregate(in, r.snapshots.Open(config.NewState(in).Source()), quiet, config.Named{Name: "ETCD", Source: r.settings},
		config.Named{Name: "CRD", Source: custom}, config.Named{Name: "INGRESS", Source: ingresses},
		config.Named{Name: "GATEWAY_API", Source: gateways})
	custom.Settings(r.views)
	ingresses.Settings(r.views)
	gateways.Views(r.views)
	r.sources = append(r.sources, custom, read, writer)
	r.operator = r.snapshots.Open(federation.ShardKey{Provider: federation.Operator})
	parts := writeback.Parts{
		Views: r.views, Gateways: gateways.Statuses(writer.Translated), Proxies: r.proxies,
		Resources: custom, Ingresses: read,
	}
	r.ended.Go(func() { _ = r.views.Run(ctx) })
	r.ended.Go(func() { _ = writer.Run(ctx, parts) })
	r.stop = func() { cancel(); r.ended.Wait() }
	t.Cleanup(r.stop)
	r.attach("c1", access)
	return r
}

// read sets the spec of MeshSettings.
func (r *rig) read(spec string) {
	r.t.Helper()
	manifest := fmt.Sprintf(`{"apiVersion":"isthmus.dev/v1","kind":"MeshSettings","metadata":{"name":"default"},"spec":%s}`, spec)
	revision, err := r.settings.Commit(r.ctx, config.Commit{Base: r.revision, Changes: []config.Change{{
		Key: federation.MeshSettingsKey, Object: &config.Object{
			Key: federation.MeshSettingsKey, APIVersion: "isthmus.dev/v1",
			Manifest: []byte(manifest),
		},
	}}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.revision = revision
}

const written = `{"sources":[{"cluster":"c1","namespaces":["*"],"status":true}]}`

// attach shows the cluster, and has it followed.
func (r *rig) attach(id federation.ClusterID, access testbed.Access) {
	r.t.Helper()
	r.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: federation.Kubernetes}},
	}})
	r.registry = r.snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: id})
	cluster := listwatchtest.Attach(r.t, access.Kubeconfig(), time.Minute)
	r.ended.Go(func() {
		cluster.Report(r.ctx, r.registry)
		cluster.Close()
	})
	for _, s := range r.sources {
		r.ended.Go(func() { s.Follow(r.ctx, id, cluster.Cluster) })
	}
}

// service has the registry report a Service with addresses from outside.
func (r *rig) service(namespace, name string, labels map[string]string, external ...string) {
	shard := &federation.Shard{Labels: labels, Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}}
	for _, text := range external {
		shard.External = append(shard.External, federation.IPAddress(netip.MustParseAddr(text)))
	}
	key := federation.ServiceKey{Hostname: federation.ResolveHost(name, namespace), Namespace: namespace}
	r.registry.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey,
		*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key: shard}}})
}

// wrote is how many statuses were written. The server has a status before the hub counts it: the
// hub writes one after the other into a cluster, and asks who the leader is in between.
func (r *rig) wrote() int {
	r.t.Helper()
	asked := r.leader.asks()
	r.leader.set(true)
	testbed.WaitFor(r.t, 5*time.Minute, "the hub to come to its next write", func() error {
		if r.leader.asks() == asked {
			return errors.New("it has not")
		}
		return nil
	})
	wrote, _ := r.counts.now()
	return wrote
}

// trouble has the problem of a source with that code.
func (r *rig) trouble(code string) string {
	for _, s := range r.views.Latest().Sources {
		for _, p := range s.Trouble {
			if p.Code == code {
				return s.Name + ": " + p.Object + ": " + p.Message
			}
		}
	}
	return ""
}

// install has the server serve kinds.
func install(t *testing.T, server *testbed.Kube, names ...string) {
	t.Helper()
	for _, file := range []string{"istio", "gateway-api", "mcs-api"} {
		server.Apply(testbed.Definitions(t, "../schema/crds/"+file+".json.gz", names...)...)
	}
}

// object is an object of the server, as JSON; its status alone if there is one.
func object(t *testing.T, server *testbed.Kube, path string) (version, status string) {
	t.Helper()
	answer := server.Do(http.MethodGet, path, nil)
	var o struct {
		Metadata struct{ ResourceVersion string }
		Status   json.RawMessage
	}
	if answer.Err != nil || json.Unmarshal(answer.Body, &o) != nil {
		t.Fatalf("GET %s: %v %s", path, answer.Err, answer.Body)
	}
	return o.Metadata.ResourceVersion, string(o.Status)
}

// says waits until the status of an object has all texts.
func says(t *testing.T, server *testbed.Kube, path string, texts ...string) (status string) {
	t.Helper()
	testbed.WaitFor(t, 5*time.Minute, "the status of "+path, func() error {
		_, status = object(t, server, path)
		for _, text := range texts {
			if !strings.Contains(status, text) {
				return fmt.Errorf("it lacks %s: %s", text, status)
			}
		}
		return nil
	})
	return status
}

// lacks waits until the status of an object does not have the text.
func lacks(t *testing.T, server *testbed.Kube, path, text string) {
	t.Helper()
	testbed.WaitFor(t, 5*time.Minute, "the status of "+path, func() error {
		if _, status := object(t, server, path); strings.Contains(status, text) {
			return fmt.Errorf("it has %s: %s", text, status)
		}
		return nil
	})
}
