package writeback_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

// counting are proxies that count of how many objects the findings are asked for.
type counting struct {
	proxies
	asked map[string]int // by name of the object
	once  func()         // called by the next News, once; nil: nothing is
}

func (c *counting) News() wanted.News {
	if c.once != nil {
		c.once()
		c.once = nil
	}
	return wanted.News{}
}

func (c *counting) Findings(_ *federation.Snapshot, r *federation.Reader, key federation.ObjectKey) (all []wanted.Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[key.Name]++
	for _, f := range apply.References(r, key) {
		all = append(all, wanted.Finding{Code: f.Code, Message: f.Message})
	}
	return all
}

// since are the objects that were asked for since it was called last.
func (c *counting) since() map[string]int {
	<-time.NewTimer(time.Hour).C // in fake time
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = map[string]int{}
	return asked
}

// many is a hub with many VirtualServices of a cluster, which nobody can write.
type many struct {
	*counting
	t        *testing.T
	store    *memory.Store
	revision int64
	writer   *writeback.Writer
	operator *federation.Writer // of clusters
	registry *federation.Writer
}

func newMany(ctx context.Context, t *testing.T, count int, ended *sync.WaitGroup) *many {
	quiet, snapshots := slog.New(slog.DiscardHandler), federation.NewAggregate(nil)
	m := &many{t: t, counting: &counting{asked: map[string]int{}}}
	m.changed, m.store = make(chan struct{}), memory.New(federation.MeshSettingsKind, virtualServiceKind)
	m.writer = writeback.New(writeback.Options{Snapshots: snapshots, Leader: &leader{leads: true, changed: make(chan struct{})}, Logger: quiet})
	m.operator = snapshots.Open(federation.ShardKey{Provider: federation.Operator})
	m.attach("c1")
	m.registry = snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: "c1"})
	in := config.Options{Hub: "hub"}
	views := config.NewAggregate(in, snapshots.Open(config.NewState(in).Source()), quiet, config.Named{Name: "ETCD", Source: m.store})
	gateways := gatewayapi.New(gatewayapi.Options{Snapshots: snapshots})
	ended.Go(func() { _ = views.Run(ctx) })
	ended.Go(func() {
		_ = m.writer.Run(ctx, writeback.Parts{
			Views: views, Gateways: gateways.Statuses(m.writer.Translated), Proxies: m,
			Resources: noReporter{}, Ingresses: noReporter{},
		})
	})
	m.commit(ctx, config.Change{Key: federation.MeshSettingsKey, Object: &config.Object{
		Key:        federation.MeshSettingsKey,
		APIVersion: "isthmus.dev/v1", Manifest: []byte(
			`{"apiVersion":"isthmus.dev/v1","kind":"MeshSettings","metadata":{"name":"default"},"spec":{"sources":[` +
				`{"cluster":"c1","namespaces":["*"],"status":true,"scope":"MESH"},{"cluster":"c2","namespaces":["*"],"status":true,"scope":"MESH"}]}}`),
	}})
	synctest.Wait() // a source reads objects because the snapshot has the settings
	var changes []config.Change
	for i := range count {
		changes = append(changes, virtualServiceOf(i, "web"))
	}
	m.commit(ctx, changes...)
	return m
}

func (m *many) attach(id federation.ClusterID) {
	m.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: federation.Kubernetes}},
	}})
}

type noReporter struct{}

func (noReporter) StatusTrouble(federation.ClusterID, []config.Problem) {}

var virtualServiceKind = federation.Kind{Group: "networking.istio.io", Name: "VirtualService"}

func virtualServiceOf(i int, host string) config.Change {
	key := federation.ObjectKey{Group: virtualServiceKind.Group, Kind: virtualServiceKind.Name, Namespace: "shop", Name: fmt.Sprint("v", i)}
	return config.Change{Key: key, Object: &config.Object{Key: key, APIVersion: "networking.istio.io/v1", Manifest: fmt.Appendf(nil,
		`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":%q,"namespace":"shop","uid":"u%d"},"spec":{"hosts":["%s-%d"],"http":[{"route":[{"destination":{"host":"%[3]s-%[4]d"}}]}]}}`,
		key.Name, i, host, i)}}
}

// commit has the objects be configuration, and be those of the cluster.
func (m *many) commit(ctx context.Context, changes ...config.Change) {
	m.t.Helper()
	revision, err := m.store.Commit(ctx, config.Commit{Base: m.revision, Changes: changes})
	if err != nil {
		m.t.Fatal(err)
	}
	m.revision = revision
	for _, c := range changes {
		m.writer.Read(&crd.Original{
			Cluster: "c1", Key: c.Key, UID: "u", Version: fmt.Sprint(revision), Generation: revision,
			Manifest: c.Object.Manifest, Resource: schema.GroupVersionResource{Resource: "virtualservices"},
		})
	}
}

func (m *many) service(name string, endpoints ...federation.Endpoint) {
	key := federation.ServiceKey{Hostname: federation.ResolveHost(name, "shop"), Namespace: "shop"}
	m.registry.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey,
		*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{
		key: {Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}, Endpoints: endpoints},
	}}})
}

// TestG60OneChangeCostsWhatItAffects: of a change, the statuses of those objects are computed again
// that it may be about, however many there are.
func TestG60OneChangeCostsWhatItAffects(t *testing.T) {
	for _, count := range []int{1000, 10_000} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var ended sync.WaitGroup
				m := newMany(ctx, t, count, &ended)
				m.only("a first look", count, m.since())
				m.commit(ctx, virtualServiceOf(7, "api"))
				m.only("a changed object", 1, m.since(), "v7")
				m.service("web-5")
				m.only("a service that comes", 1, m.since(), "v5")
				m.service("web-5", federation.Endpoint{Ports: []federation.EndpointPort{{Name: "http", Number: 8080}}})
				m.only("an endpoint", 0, m.since())
				cancel()
				ended.Wait()
			})
		})
	}
}

// only reports whether that many objects were looked at, and which.
func (m *many) only(after string, count int, asked map[string]int, names ...string) {
	m.t.Helper()
	if len(asked) != count {
		m.t.Errorf("after %s, %d statuses were computed, want %d", after, len(asked), count)
	}
	for _, name := range names {
		if asked[name] == 0 || asked[name] > 4 {
			m.t.Errorf("after %s, the status of %s was computed %d times", after, name, asked[name])
		}
	}
}

// TestR112AnObjectReadDuringALookIsNotForgotten: its cluster was attached after the look began.
func TestR112AnObjectReadDuringALookIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		m := newMany(ctx, t, 10, &ended)
		m.since()
		m.once = func() {
			m.attach("c2")
			m.writer.Read(&crd.Original{Cluster: "c2", Key: virtualServiceOf(3, "").Key, UID: "u", Version: "1", Generation: 1})
		}
		m.commit(ctx, virtualServiceOf(7, "api"))
		m.only("a cluster that comes", 2, m.since(), "v7", "v3")
		cancel()
		ended.Wait()
	})
}
