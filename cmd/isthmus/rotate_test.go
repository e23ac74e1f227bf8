package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

var rotations = flag.Int("rotations", 5, "how often credentials are rotated while somebody looks")

// TestF49RotationsMissNoEndpoint: a client that reads meanwhile sees each endpoint at
// any time (P21).
func TestF49RotationsMissNoEndpoint(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}, {Name: "second"}}})
	kube.GrantRead("reader")
	kube.GrantRead("second")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	h := startHub(t)
	if got := h.ask(t, "attachCluster", kubernetesInput("east", kube.User("reader"))); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitPhase(t, "east", "READY")
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	defer looking.Wait()
	defer stop()
	looks := 0
	looking.Go(func() {
		for ; ctx.Err() == nil; looks++ {
			var answer struct {
				Service *struct{ Endpoints struct{ TotalCount int } }
			}
			err := h.query(`{service(hostname: "web.shop.svc.cluster.local") {endpoints {totalCount}}}`, &answer)
			if err != nil || answer.Service == nil || answer.Service.Endpoints.TotalCount != 1 {
				t.Errorf("look %d sees %+v, %v", looks, answer.Service, err)
				return
			}
		}
	})
	for i := range *rotations {
		user := []string{"second", "reader"}[i%2]
		if got := h.ask(t, "rotateCluster", kubernetesInput("east", kube.User(user))); got.refusals() != "" {
			t.Fatalf("rotation %d: %+v", i, got)
		}
		h.await(t, "the rotation", func() error {
			if n := strings.Count(h.log.String(), "a registry was replaced"); n != i+1 {
				return fmt.Errorf("%d registries were replaced, want %d", n, i+1)
			}
			return nil
		})
	}
	stop()
	looking.Wait()
	if c := h.awaitPhase(t, "east", "READY"); c.Status.Message != "" {
		t.Errorf("it says %q", c.Status.Message)
	}
	t.Logf("%d rotations, %d looks", *rotations, looks)
}

// TestF47AnotherClusterIsConfirmed: another API server behind the same address is
// held, with what was known served, until it is confirmed.
func TestF47AnotherClusterIsConfirmed(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{})
	kube.Apply(strings.Split(attachedService, "---\n")...)
	h := startHub(t)
	if got := h.ask(t, "attachCluster", kubernetesInput("east", kube.Admin)); got.refusals() != "" ||
		got.codes("WARNING") != "RIGHTS_TOO_WIDE CREDENTIALS_EXPIRY" {
		t.Fatalf("B-K17: attached with all rights: %+v", got)
	}
	h.awaitPhase(t, "east", "READY")
	kube.Replace()
	c := h.awaitPhase(t, "east", "HELD")
	if !strings.Contains(c.Status.Message, "another cluster answers") {
		t.Errorf("it says %q", c.Status.Message)
	}
	if got := h.ask(t, "rotateCluster", kubernetesInput("east", kube.Admin)); !strings.Contains(got.refusals(), "OTHER_CLUSTER") {
		t.Errorf("rotated to another cluster: %+v", got)
	}
	served := func() bool {
		var answer struct{ Service *struct{ Hostname string } }
		return h.query(`{service(hostname: "web.shop.svc.cluster.local") {hostname}}`, &answer) == nil && answer.Service != nil
	}
	if !served() {
		t.Error("what was known is gone while the cluster is held")
	}
	if got := h.ask(t, "confirmCluster", map[string]any{"clusterID": "east"}); got.refusals() != "" {
		t.Errorf("confirmed: %+v", got)
	}
	h.awaitPhase(t, "east", "READY")
	h.await(t, "what the other cluster does not have to go", func() error {
		if served() {
			return fmt.Errorf("it is served")
		}
		return nil
	})
}

// TestConsulIsAttached by its address and token, looked at as it is read.
func TestConsulIsAttached(t *testing.T) {
	t.Parallel()
	consul := testbed.StartConsul(t, testbed.ConsulOptions{ACL: true})
	token, _ := consul.NewToken(`service_prefix "" {policy = "read"} node_prefix "" {policy = "read"}`)
	h := startHub(t)
	input := func(id, token string) map[string]any {
		return map[string]any{"clusterID": id, "consul": map[string]any{"address": consul.URL, "token": token}}
	}
	blind, _ := consul.NewToken(`service_prefix "x" {policy = "read"}`)
	if got := h.ask(t, "attachCluster", input("dc1", blind)); got.refusals() != "RIGHTS" || got.Cluster != nil {
		t.Errorf("with a token that sees little: %+v", got)
	}
	if got := h.ask(t, "attachCluster", input("dc1", token)); got.refusals() != "" || got.Cluster == nil || got.Cluster.Provider != "CONSUL" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitPhase(t, "dc1", "READY")
	if got := h.ask(t, "attachCluster", input("dc2", token)); got.refusals() != "DUPLICATE_CLUSTER" {
		t.Errorf("the same Consul again: %+v", got)
	}
	if got := h.ask(t, "detachCluster", map[string]any{"clusterID": "dc1"}); got.refusals() != "" {
		t.Errorf("detached: %+v", got)
	}
	h.stop()
	nowhere(t, h.dir, map[string]string{"the token": token})
	notIn(t, "the log", []byte(h.log.String()), map[string]string{"the token": token})
}

// TestR06UsageIsShown where operators look: what the hub keeps of a cluster, and the limits.
func TestR06UsageIsShown(t *testing.T) {
	plainEnvironment(t)
	consul := testbed.StartConsul(t, testbed.ConsulOptions{})
	h := startHub(t)
	t.Setenv("ISTHMUS_SERVER", "unix:"+filepath.Join(h.dir, "graphql"))
	if got := h.ask(t, "attachCluster", map[string]any{
		"clusterID": "dc1",
		"consul":    map[string]any{"address": consul.URL},
	}); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitPhase(t, "dc1", "READY")
	if out := mustRun(t, "describe", "cluster", "dc1"); !strings.Contains(out, "of at most 500000 objects") ||
		!strings.Contains(out, "of at most 1024 MiB") {
		t.Errorf("described: %s", out)
	}
	_, page, err := h.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`objects{cluster="dc1"} `, `bytes{cluster="dc1"} `, `objects_limit{cluster="dc1"} 500000`,
		`bytes_limit{cluster="dc1"} 1.073741824e+09`,
	} {
		if !strings.Contains(page, "\nisthmus_registry_"+want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}
