package serviceimport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

const (
	limit  = 5 * time.Minute
	rights = "service-imports.yaml"
)

func asShipped(manifest string) string { return manifest }

// counts are the writes by their outcome; empty: those that succeeded.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) ImportWrote(id federation.ClusterID) { c.ImportFailed(id, "") }

func (c *counts) ImportFailed(_ federation.ClusterID, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[reason]++
}

func (c *counts) get(reason string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[reason]
}

// rig is an API server, and the hub's account there with the rights of the shipped manifests.
type rig struct {
	t       *testing.T
	kube    *testbed.Kube
	cluster *listwatch.Cluster
	mesh    *federation.Aggregate
	writers map[federation.ClusterID]*federation.Writer
	log     testbed.LogText
	counts  counts
}

func newRig(t *testing.T, change func(manifest string) string) *rig {
	r := &rig{
		t: t, kube: testbed.StartKube(t, testbed.KubeOptions{}), mesh: federation.NewAggregate(nil),
		writers: map[federation.ClusterID]*federation.Writer{},
	}
	r.counts.of = map[string]int{}
	r.defineServiceImports()
	for _, file := range []string{"reader.yaml", rights} {
		r.kube.Apply(change(r.manifest(file)))
	}
	r.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n")
	token := r.kube.ServiceAccountToken(testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"})
	config := &rest.Config{Host: r.kube.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: r.kube.Admin.CA}, QPS: -1}
	r.cluster = listwatchtest.Connected(t, config)
	return r
}

// manifest is a manifest that is shipped.
func (r *rig) manifest(file string) string {
	text, err := os.ReadFile("../../deploy/kubernetes/" + file)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// defineServiceImports gives the server the kind, as the module of the API has it.
func (r *rig) defineServiceImports() {
	r.kube.Apply(testbed.Definitions(r.t, "../../federation/config/schema/crds/mcs-api.json.gz", "serviceimports.multicluster.x-k8s.io")...)
	testbed.WaitFor(r.t, limit, "the kind ServiceImport", func() error {
		if answer := r.kube.Do(http.MethodGet, "/apis/multicluster.x-k8s.io/v1beta1/serviceimports", nil); answer.Status != http.StatusOK {
			return fmt.Errorf("the server answers %d", answer.Status)
		}
		return nil
	})
}

// hub is one of several that may write.
type hub struct{ leads atomic.Bool }

func (h *hub) Leads() bool { return h.leads.Load() }

// follow runs a writer until the test ends.
func (r *rig) follow(leader *hub, ready <-chan struct{}) {
	w := New(Options{
		Snapshots: r.mesh, Ready: ready, Leader: leader, Meter: &r.counts, Grace: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { w.Follow(ctx, "c1", r.cluster) })
	r.t.Cleanup(func() { cancel(); ended.Wait() })
}

// export has the cluster export services of the namespace shop with that port, and no others.
func (r *rig) export(cluster federation.ClusterID, port uint16, names ...string) {
	if r.writers[cluster] == nil {
		r.writers[cluster] = r.mesh.Open(federation.ShardKey{Cluster: cluster, Provider: federation.Kubernetes})
	}
	e := federation.Edit{Services: federation.Delta[federation.ServiceKey, *federation.Shard]{
		Full: true,
		Set:  map[federation.ServiceKey]*federation.Shard{},
	}}
	for _, name := range names {
		key := federation.ServiceKey{Hostname: federation.Hostname(name + ".shop.svc.clusterset.local"), Namespace: "shop"}
		e.Services.Set[key] = &federation.Shard{Ports: []federation.Port{{Name: "http", Number: port, Protocol: federation.HTTP}}}
	}
	r.writers[cluster].Update(e)
}

func pathOf(name string) string {
	return "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceimports/" + name
}

// is what the ServiceImport says in short; empty: there is none.
func (r *rig) is(name string) string {
	answer := r.kube.Do(http.MethodGet, pathOf(name), nil)
	if answer.Status == http.StatusNotFound {
		return ""
	}
	var o struct {
		Spec   Spec
		Status struct{ Clusters []struct{ Cluster string } }
	}
	answer.Decode(r.t, &o)
	text := o.Spec.Type
	for _, p := range o.Spec.Ports {
		text += fmt.Sprintf(" %s/%d", p.Name, p.Port)
	}
	for _, c := range o.Status.Clusters {
		text += " " + c.Cluster
	}
	return text
}

func (r *rig) await(name, want string) {
	r.t.Helper()
	testbed.WaitFor(r.t, limit, "the ServiceImport "+name, func() error {
		if got := r.is(name); got != want {
			return fmt.Errorf("it is %q, want %q", got, want)
		}
		return nil
	})
}

// others makes a ServiceImport as another controller does.
func (r *rig) others(name string) {
	r.kube.Apply(fmt.Sprintf(`apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: %s, namespace: shop}
spec: {type: ClusterSetIP, ports: [{name: theirs, protocol: TCP, port: 1}]}
`, name))
}

// TestG70ServiceImportsFollowTheExports in a real cluster, with the rights of the shipped
// manifests: they come, change and go, and those of somebody else stay as they are.
func TestG70ServiceImportsFollowTheExports(t *testing.T) {
	t.Parallel()
	r := newRig(t, asShipped)
	r.others("theirs")
	leader, ready := &hub{}, make(chan struct{})
	close(ready)
	leader.leads.Store(true)
	r.follow(leader, ready)
	r.export("c1", 80, "web", "theirs", "later")
	r.await("web", "ClusterSetIP http/80 c1")
	r.export("c2", 80, "web")
	r.await("web", "ClusterSetIP http/80 c1 c2")
	r.export("c1", 81, "web", "theirs", "later")
	r.await("later", "ClusterSetIP http/81 c1")
	r.kube.Delete("apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata: {name: later, namespace: shop}\n")
	r.await("later", "ClusterSetIP http/81 c1") // somebody deleted it
	r.export("c1", 81)
	r.await("later", "")
	r.await("web", "ClusterSetIP http/80 c2")
	r.export("c2", 80)
	r.await("web", "")
	if !strings.Contains(r.log.String(), `the hub did not create it" cluster=c1 object="ServiceImport shop/theirs"`) {
		t.Error("the log does not name the ServiceImport of somebody else")
	}
	if n := r.counts.get(""); n < 5 || r.counts.get("forbidden")+r.counts.get("refused") > 0 {
		t.Errorf("%d writes are counted, and of failures %v", n, r.counts.of)
	}
	if got := r.is("theirs"); got != "ClusterSetIP theirs/1" {
		t.Errorf("the ServiceImport of somebody else is %q", got)
	}
}

// TestG71OneHubWrites, when it may and when it knows what is exported: what another hub wrote
// before stays until then, and a hub that is not the leader writes nothing.
func TestG71OneHubWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(manifest string) string {
		return strings.Replace(manifest, "create, patch, delete", "patch, delete", 1)
	})
	r.export("c1", 80, "web", "last")
	first, second := &hub{}, &hub{}
	known, unknown := make(chan struct{}), make(chan struct{})
	close(known)
	first.leads.Store(true)
	r.follow(first, known)
	testbed.WaitFor(t, limit, "the log of a write that is refused", func() error {
		if !strings.Contains(r.log.String(), "cannot be written") {
			return errors.New("it is not there")
		}
		return nil
	})
	if r.counts.get("forbidden") == 0 || r.counts.get("") > 0 {
		t.Errorf("counted are %v", r.counts.of)
	}
	r.kube.Apply(r.manifest(rights))
	r.await("last", "ClusterSetIP http/80 c1")
	r.await("web", "ClusterSetIP http/80 c1")
	first.leads.Store(false)
	r.export("c1", 80)
	second.leads.Store(true)
	r.follow(second, unknown)
	r.export("c2", 80, "web")
	if got := r.is("last"); got != "ClusterSetIP http/80 c1" {
		t.Errorf("nobody may write, and there is %q", got)
	}
	close(unknown)
	r.await("web", "ClusterSetIP http/80 c2")
	r.await("last", "")
}
