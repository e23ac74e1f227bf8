package ingress_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/ingress"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a hub's configuration that has a source of Ingresses.
type rig struct {
	t         *testing.T
	snapshots *federation.Aggregate
	settings  *memory.Store
	revision  int64
	reader    *crd.Source
	source    *ingress.Source
	operator  *federation.Writer
	ended     sync.WaitGroup
	ctx       context.Context //nolint:containedctx // of the test
}

func newRig(t *testing.T, change ...func(*ingress.Options)) *rig {
	t.Helper()
	r := &rig{t: t, snapshots: federation.NewAggregate(nil), settings: memory.New(federation.MeshSettingsKind)}
	o := ingress.Options{Snapshots: r.snapshots, Patience: configtest.Patience}
	for _, c := range change {
		c(&o)
	}
	r.reader = crd.New(crd.Options{
		Kinds: ingress.Kinds, Schema: ingress.Schema{}, Everywhere: ingress.Wanted, Snapshots: r.snapshots,
		Look: 300 * time.Millisecond, Patience: o.Patience,
	})
	o.Reader = r.reader
	r.source = ingress.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = ctx
	in := config.Options{Hub: "hub"}
	views := config.NewAggregate(in, r.snapshots.Open(config.NewState(in).Source()), slog.New(slog.DiscardHandler),
		config.Named{Name: "ETCD", Source: r.settings})
	r.source.Settings(views)
	r.operator = r.snapshots.Open(federation.ShardKey{Provider: federation.Operator})
	r.ended.Go(func() { _ = views.Run(ctx) })
	t.Cleanup(func() { cancel(); r.ended.Wait() })
	return r
}

// mode sets the ingress mode of MeshSettings.
func (r *rig) mode(mode federation.IngressMode) {
	r.t.Helper()
	manifest := fmt.Sprintf(`{"apiVersion":"isthmus.dev/v1","kind":"MeshSettings","metadata":{"name":"default"},"spec":{"ingressControllerMode":%q}}`, mode)
	r.revision = configtest.Must(r.t, r.settings, config.Commit{Base: r.revision, Changes: []config.Change{{
		Key: federation.MeshSettingsKey, Object: &config.Object{
			Key: federation.MeshSettingsKey, APIVersion: "isthmus.dev/v1",
			Manifest: []byte(manifest),
		},
	}}})
}

// attach shows the cluster with the service web, and has it followed until detach is called.
func (r *rig) attach(id federation.ClusterID, access testbed.Access) (registry *federation.Writer, detach func()) {
	r.t.Helper()
	r.show(id, federation.Kubernetes)
	registry = r.snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: id})
	cluster := listwatchtest.Attach(r.t, access.Kubeconfig(), time.Minute)
	ctx, cancel := context.WithCancel(r.ctx)
	var running sync.WaitGroup
	running.Go(func() { cluster.Report(ctx, registry) })
	running.Go(func() { r.reader.Follow(ctx, id, cluster.Cluster) })
	end := sync.OnceFunc(func() { cancel(); running.Wait(); cluster.Close() })
	r.ended.Go(func() { <-r.ctx.Done(); end() })
	return registry, func() {
		end()
		r.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID,
			federation.ClusterSpec]{Gone: []federation.ClusterID{id}}})
	}
}

func (r *rig) show(id federation.ClusterID, provider federation.Provider) {
	r.operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: provider}},
	}})
}

// web has the registry report the service web of the namespace with the port http.
func web(registry *federation.Writer, namespace string, port uint16) {
	registry.Update(federation.Edit{Services: federation.Delta[federation.ServiceKey,
		*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{
		{
			Hostname:  federation.ResolveHost("web", namespace),
			Namespace: namespace,
		}: {Ports: []federation.Port{{Name: "http", Number: port, Protocol: federation.HTTP}}},
	}}})
}

// manifest is an Ingress of the class ours.
func manifest(namespace, name, host, port string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":%q,"namespace":%q},"spec":{"ingressClassName":"ours",
		"tls":[{"hosts":[%q],"secretName":"cert"}],
		"rules":[{"host":%[3]q,"http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{%[4]s}}}}]}}]}}`,
		name, namespace, host, port)
}

const ours = `{"apiVersion":"networking.k8s.io/v1","kind":"IngressClass","metadata":{"name":"ours"},"spec":{"controller":"istio.io/ingress-controller"}}`

func key(kind, namespace, name string) federation.ObjectKey {
	return federation.ObjectKey{Group: "networking.istio.io", Kind: kind, Namespace: namespace, Name: name, Cluster: "c1"}
}

func says(o *config.Object, text string) bool {
	return o != nil && strings.Contains(string(o.Manifest), text)
}

func coded(s configtest.Seen, code, object string) bool {
	for _, p := range s.Problems {
		if p.Code == code && strings.Contains(p.Object, object) {
			return true
		}
	}
	return false
}

// TestG15Ingresses reads a real API server.
func TestG15Ingresses(t *testing.T) {
	server := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "narrow"}}})
	server.Apply(ours, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	t.Run("FromTheServerToObjects", func(t *testing.T) { fromServer(t, server) })
	t.Run("WithoutRights", func(t *testing.T) { forbidden(t, server) })
}

func fromServer(t *testing.T, server *testbed.Kube) {
	r := newRig(t)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "nothing without settings", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Objects) == 0 })
	registry, detach := r.attach("c1", server.Admin)
	web(registry, "shop", 80)
	server.Apply(manifest("shop", "a", "a.example", `"name":"http"`))
	r.mode(federation.IngressStrict)
	route := key("VirtualService", "shop", "ingress-host.a.example")
	seen := recorder.Wait(t, "what the Ingress means",
		func(s configtest.Seen) bool { return len(s.Objects) == 3 && says(s.Objects[route], `"number":80`) })
	if o := seen.Objects[key("Gateway", "shop", "ingress-tls-cert")]; o == nil ||
		o.Credentials != (federation.CredentialGrant{From: "shop", To: "istio-system"}) {
		t.Errorf("the Gateway of the certificate is %+v", o)
	}
	if len(seen.Problems) > 0 {
		t.Errorf("the problems are %+v", seen.Problems)
	}
	updates := len(seen.Updates)
	web(registry, "shop", 8080)
	seen = recorder.Wait(t, "the changed port of the service", func(s configtest.Seen) bool { return says(s.Objects[route], `"number":8080`) })
	server.ApplyStatus(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"a","namespace":"shop"},"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`)
	server.Apply(manifest("shop", "b", "b.example", `"name":"none"`))
	seen = recorder.Wait(t, "a second Ingress", func(s configtest.Seen) bool {
		return len(s.Objects) == 4 && coded(s, "BACKEND_PORT_UNKNOWN", "Ingress shop/b of cluster c1")
	})
	if n := len(seen.Updates) - updates; n != 2 {
		t.Errorf("a port, a status and an Ingress came as %d updates", n)
	}
	if last := seen.Updates[len(seen.Updates)-1]; len(last.Events) != 2 {
		t.Errorf("the second Ingress, with the same certificate, came as %+v", last.Events)
	}
	answer := server.Do(http.MethodDelete, "/apis/networking.k8s.io/v1/ingressclasses/ours", nil)
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	recorder.Wait(t, "the end of the class", func(s configtest.Seen) bool {
		return len(s.Objects) == 0 && coded(s, "INGRESS_CLASS_UNKNOWN", "Ingress shop/a")
	})
	server.Apply(ours)
	recorder.Wait(t, "the class again", func(s configtest.Seen) bool { return len(s.Objects) == 4 })
	server.Delete(manifest("shop", "b", "", ""))
	recorder.Wait(t, "the deletion", func(s configtest.Seen) bool { return len(s.Objects) == 3 && len(s.Problems) == 0 })
	r.mode(federation.IngressOff)
	recorder.Wait(t, "nothing in mode OFF", func(s configtest.Seen) bool { return len(s.Objects) == 0 })
	r.mode(federation.IngressDefault)
	recorder.Wait(t, "the objects again", func(s configtest.Seen) bool { return len(s.Objects) == 3 })
	detach()
	recorder.Wait(t, "nothing of a detached cluster", func(s configtest.Seen) bool { return len(s.Objects) == 0 && len(s.Problems) == 0 })
}

// forbidden: an account without rights is a problem that says what to grant.
func forbidden(t *testing.T, server *testbed.Kube) {
	const proof = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"%s","metadata":{"name":"proof"},%s}`
	server.Apply(
		fmt.Sprintf(proof, "ClusterRole", `"rules":[{"apiGroups":[""],"resources":["namespaces"],"verbs":["list","watch"]}]`),
		fmt.Sprintf(proof, "ClusterRoleBinding", `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"proof"},
			"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"narrow"}]`))
	r := newRig(t)
	r.mode(federation.IngressDefault)
	registry, _ := r.attach("c1", server.User("narrow"))
	web(registry, "shop", 80)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "a problem for each resource", func(s configtest.Seen) bool {
		return len(s.Updates) == 1 && len(s.Objects) == 0 && coded(s, "UNREADABLE", "ingresses.networking.k8s.io of cluster c1") &&
			coded(s, "UNREADABLE", "ingressclasses")
	})
}

// TestSeed29 has registries without Kubernetes: there are no Ingresses, whatever the mode.
func TestSeed29(t *testing.T) {
	r := newRig(t, func(o *ingress.Options) { o.Patience = time.Hour }) // it waits for no datacenter
	r.mode(federation.IngressDefault)
	r.show("dc1", federation.Consul)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "nothing", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Objects)+len(s.Problems) == 0 })
}

// TestG18NothingWaitsForClustersInModeOff: a hub without Ingresses does not wait for clusters
// that are being read.
func TestG18NothingWaitsForClustersInModeOff(t *testing.T) {
	r := newRig(t, func(o *ingress.Options) { o.Patience = time.Hour })
	r.show("c1", federation.Kubernetes)
	recorder, _ := configtest.Listen(t, r.source)
	recorder.Wait(t, "the first update", func(s configtest.Seen) bool { return len(s.Updates) == 1 && len(s.Objects)+len(s.Problems) == 0 })
}
