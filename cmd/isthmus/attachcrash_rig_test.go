package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/deploy/testbed"
)

// secretsOf begins the keys of the store under which credentials lie.
const secretsOf = "/isthmus/v1/secret/"

// crashing is a hub that dies while it attaches and detaches one cluster, with a
// store that outlives it and can be looked into.
type crashing struct {
	whole    *testing.T // programs live until its end
	t        *testing.T // of the step
	store    *testbed.Etcd
	link     *testbed.Proxy // by which the hub reaches the store
	look     *clientv3.Client
	kube     *testbed.Kube
	proxy    *apiProxy
	clock    *testbed.Clock
	dir      string
	p        *program
	services int // of the cluster, when all is well
}

func newCrashing(t *testing.T) *crashing {
	t.Helper()
	c := &crashing{whole: t, t: t, clock: testbed.StartClock(t), store: testbed.StartEtcd(t, testbed.EtcdOptions{}), dir: shortDir(t)}
	c.kube = testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	c.kube.GrantRead("reader")
	c.kube.Apply(strings.Split(attachedService, "---\n")...)
	c.proxy = startAPIProxy(t, c.kube.User("reader"))
	var err error
	c.look, err = clientv3.New(clientv3.Config{Endpoints: []string{c.store.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.look.Close() })
	c.link = testbed.StartProxy(t, strings.TrimPrefix(c.store.URL, "http://"))
	c.start()
	return c
}

func (c *crashing) start() {
	c.t.Helper()
	c.p = startProgramIn(c.whole, c.dir, "--etcd-endpoints", "http://"+c.link.Addr())
	if took := c.clock.Since(c.p.up); took > 5*time.Second {
		c.t.Errorf("the hub was ready %v after it answered, although the cluster answers", took)
	}
}

// saved is the file with what was last known of the cluster.
func (c *crashing) saved() string {
	return filepath.Join(c.dir, "data", "last-known-good", "east.Kubernetes.db")
}

// attach tries until the cluster is attached, as somebody does who got no answer.
func (c *crashing) attach() {
	c.t.Helper()
	if got := c.p.at().ask(c.t, "attachCluster", kubernetesInput("east", c.proxy.access)); got.refusals() != "" &&
		!strings.Contains(got.refusals(), "DUPLICATE_CLUSTER_ID") {
		c.t.Fatalf("attached: %+v", got)
	}
	shown := c.p.at().awaitPhase(c.t, "east", "READY")
	if c.services == 0 {
		c.services = shown.Services.TotalCount
	}
	if shown.Services.TotalCount != c.services || len(shown.Problems.Nodes) > 0 {
		c.t.Errorf("of the cluster there is %+v, want %d services", shown, c.services)
	}
	c.p.at().await(c.t, "the saved state", func() error { _, err := os.Stat(c.saved()); return err })
	if n := c.secrets(); n != 1 {
		c.t.Errorf("there are %d credentials, want 1", n)
	}
}

// secrets counts the credentials in the store.
func (c *crashing) secrets() int {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	found, err := c.look.Get(ctx, secretsOf, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		c.t.Fatal(err)
	}
	return int(found.Count)
}

// wantWhole: there is an object with credentials, or neither.
func (c *crashing) wantWhole() {
	c.t.Helper()
	var answer struct {
		ConfigObjects struct{ TotalCount int }
	}
	if err := c.p.at().query(`{configObjects(filter: {kind: "Cluster"}) {totalCount}}`, &answer); err != nil {
		c.t.Fatal(err)
	}
	if n := c.secrets(); n != answer.ConfigObjects.TotalCount || n > 1 {
		c.t.Errorf("there are %d objects and %d credentials", answer.ConfigObjects.TotalCount, n)
	}
}

// nothingLeft is what is left of the cluster.
func (c *crashing) nothingLeft() error {
	if shown, err := c.p.at().cluster("east"); err == nil {
		return fmt.Errorf("it is %+v", shown)
	}
	var answer struct {
		Services struct{ TotalCount int }
	}
	err := c.p.at().query(`{services(filter: {clusterID: "east"}) {totalCount}}`, &answer)
	if err != nil || answer.Services.TotalCount > 0 {
		return fmt.Errorf("%d services are left, %w", answer.Services.TotalCount, err)
	}
	if _, err := os.Stat(c.saved()); err == nil {
		return errors.New("its saved state is left")
	}
	if n := c.secrets(); n > 0 {
		return fmt.Errorf("%d credentials are left", n)
	}
	return nil
}

// wantNothing waits until nothing is left, 5 s from then at the most.
func (c *crashing) wantNothing(began time.Time) {
	c.t.Helper()
	c.p.at().await(c.t, "nothing of the cluster to be left", c.nothingLeft)
	if took := c.clock.Since(began); took > 5*time.Second {
		c.t.Errorf("it took %v", took)
	}
}

func (c *crashing) detach() {
	c.t.Helper()
	if got := c.p.at().ask(c.t, "detachCluster", map[string]any{"clusterID": "east"}); got.refusals() != "" {
		c.t.Fatalf("detached: %+v", got)
	}
}

// whenStored has the hub die as soon as the store has changed credentials.
func (c *crashing) whenStored(p *program) (stop func()) { return c.whenStoredUnder(p, secretsOf) }

// whenStoredUnder is the same for other keys.
func (c *crashing) whenStoredUnder(p *program, prefix string) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	events := c.look.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events // the watch is there
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events {
			if len(e.Events) > 0 {
				_ = p.Process.Kill()
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}
