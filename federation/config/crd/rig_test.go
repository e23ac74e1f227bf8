package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// rig is a hub's configuration that has a source of custom resources.
type rig struct {
	t         *testing.T
	snapshots *federation.Aggregate
	settings  *memory.Store
	views     *config.Aggregate // of the settings
	revision  int64
	source    *crd.Source
	operator  *federation.Writer
	probe     time.Duration // of the clusters: a server that is slow for a moment is not trouble
	ended     sync.WaitGroup
	ctx       context.Context //nolint:containedctx // of the test
	cancel    func()
}

func kinds(t *testing.T) *schema.Set {
	t.Helper()
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// newRig makes a source that nothing follows yet.
func newRig(t *testing.T, change ...func(*crd.Options)) *rig {
	t.Helper()
	set := kinds(t)
	r := &rig{t: t, snapshots: federation.NewAggregate(nil), settings: memory.New(federation.MeshSettingsKind), probe: time.Minute}
	o := crd.Options{
		Kinds: set.Kinds(), Ignored: set.Ignored(), Schema: kind.Schema{Set: set, Newer: true}, Snapshots: r.snapshots,
		Look: 300 * time.Millisecond, Patience: configtest.Patience,
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	r.source = crd.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx, r.cancel = ctx, cancel
	in := config.Options{Hub: "hub"}
	r.views = config.NewAggregate(in, r.snapshots.Open(config.NewState(in).Source()), slog.New(slog.DiscardHandler),
		config.Named{Name: "ETCD", Source: r.settings})
	r.source.Settings(r.views)
	r.operator = r.snapshots.Open(federation.ShardKey{Provider: federation.Operator})
	r.ended.Go(func() { _ = r.views.Run(ctx) })
	t.Cleanup(func() { cancel(); r.ended.Wait() })
	return r
}

// read sets sources of MeshSettings, which the source knows from then on.
func (r *rig) read(sources ...string) {
	r.t.Helper()
	manifest := fmt.Sprintf(`{"apiVersion":"isthmus.dev/v1","kind":"MeshSettings","metadata":{"name":"default"},"spec":{"sources":[%s]}}`,
		strings.Join(sources, ","))
	r.revision = configtest.Must(r.t, r.settings, config.Commit{Base: r.revision, Changes: []config.Change{{
		Key: federation.MeshSettingsKey, Object: &config.Object{
			Key: federation.MeshSettingsKey, APIVersion: "isthmus.dev/v1",
			Manifest: []byte(manifest),
		},
	}}})
	if _, err := r.views.WaitFor(r.ctx, r.revision); err != nil {
		r.t.Fatal(err)
	}
}

// all reads everything of a namespace, or of all namespaces.
func all(id, namespace string) string {
	return fmt.Sprintf(`{"cluster":%q,"namespaces":[%q],"scope":"MESH"}`, id, namespace)
}

// attach shows the cluster and has it followed until detach is called.
func (r *rig) attach(id federation.ClusterID, access testbed.Access, precedence int) (detach func()) {
	r.t.Helper()
	r.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: federation.Kubernetes, Precedence: precedence}},
	}})
	end := r.follow(id, access)
	return func() {
		end()
		r.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID,
			federation.ClusterSpec]{Gone: []federation.ClusterID{id}}})
	}
}

// follow follows the cluster until end is called.
func (r *rig) follow(id federation.ClusterID, access testbed.Access) (end func()) {
	r.t.Helper()
	registry := r.snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: id})
	cluster := listwatchtest.Attach(r.t, access.Kubeconfig(), r.probe)
	ctx, cancel := context.WithCancel(r.ctx)
	var running sync.WaitGroup
	running.Go(func() { cluster.Report(ctx, registry) })
	running.Go(func() { r.source.Follow(ctx, id, cluster.Cluster) })
	end = sync.OnceFunc(func() { cancel(); running.Wait(); cluster.Close() })
	r.ended.Go(func() { <-r.ctx.Done(); end() })
	return end
}

// definition is the CustomResourceDefinition of a plural name.
func definition(t *testing.T, file, name string) map[string]any {
	t.Helper()
	found := testbed.Definitions(t, "../schema/crds/"+file+".json.gz", name)
	var d map[string]any
	if len(found) != 1 || json.Unmarshal([]byte(found[0]), &d) != nil {
		t.Fatalf("%s has %d definitions of %s", file, len(found), name)
	}
	return d
}

// install has the server serve the kinds.
func install(t *testing.T, server *testbed.Kube, definitions ...map[string]any) {
	t.Helper()
	for _, d := range definitions {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		server.Apply(string(text))
	}
}

func served(d map[string]any, versions ...string) map[string]any {
	for _, v := range d["spec"].(map[string]any)["versions"].([]any) {
		version := v.(map[string]any)
		version["served"] = slices.Contains(versions, version["name"].(string))
		version["storage"] = version["name"] == versions[0]
	}
	return d
}

func namespace(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
}

// route is a VirtualService that sends a host to another.
func route(namespace, name, to string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":%q,"namespace":%q},
		"spec":{"hosts":["web"],"http":[{"route":[{"destination":{"host":%q}}]}]}}`, name, namespace, to)
}

func routeKey(namespace, name string) federation.ObjectKey {
	return federation.ObjectKey{Group: "networking.istio.io", Kind: "VirtualService", Namespace: namespace, Name: name}
}

func says(o *config.Object, text string) bool {
	return o != nil && strings.Contains(string(o.Manifest), text)
}

// do changes something at the server; it must be accepted.
func do(t *testing.T, server *testbed.Kube, method, path, body string) {
	t.Helper()
	if answer := server.Do(method, path, []byte(body)); answer.Err != nil || answer.Status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %v %s", method, path, answer.Status, answer.Err, answer.Body)
	}
}
