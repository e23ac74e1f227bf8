package etcd_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

const counterCount = 12

// filling makes the counters of one commit need several steps.
var filling = strings.Repeat("x", 100<<10)

// counters is a commit that sets all counters to n.
func counters(base, n int64) config.Commit {
	objects := make([]*config.Object, counterCount)
	for i := range objects {
		objects[i] = configtest.Object(fmt.Sprintf("counter-%d", i), fmt.Sprintf("%d %s", n, filling))
	}
	return configtest.Set(base, objects...)
}

func counterOf(o *config.Object) (n int64) {
	fmt.Sscan(configtest.Value[string](o), &n)
	return n
}

type ignored struct{}

func (ignored) Update(config.Update)     {}
func (ignored) Trouble([]config.Problem) {}

// counts is a Meter.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) Count(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[what] += n
}

func (c *counts) get(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[what]
}

// waitUntil asks until the condition holds.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.Now().Add(configtest.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(limit) {
			t.Fatalf("waiting for %s", what)
		}
		<-tick.C
	}
}

func keys(t *testing.T, s *etcd.Store, prefix string) []string {
	t.Helper()
	answer, err := s.Client().Get(context.Background(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, kv := range answer.Kvs {
		found = append(found, string(kv.Key))
	}
	return found
}

// staged counts the transactions that nothing refers to.
func staged(t *testing.T, s *etcd.Store) int {
	t.Helper()
	transactions := map[string]bool{}
	for _, key := range keys(t, s, "/isthmus/v1/config/tx/") {
		transactions[strings.Split(key, "/")[5]] = true
	}
	return len(transactions) - len(keys(t, s, "/isthmus/v1/config/log/")) - len(keys(t, s, "/isthmus/v1/config/checkpoint/"))
}

// opened is an open store in a new folder, until the test ends.
func opened(t *testing.T, o etcd.Options) *etcd.Store {
	t.Helper()
	if o.DataDir == "" {
		o.DataDir = filepath.Join(t.TempDir(), "etcd")
	}
	o.Patience = configtest.Patience
	s, err := etcd.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// patient is for tests that are not about limits of time.
func patient() etcd.ConfigOptions { return etcd.ConfigOptions{Patience: configtest.Patience} }

// eager does at once what usually waits for its time.
func eager() etcd.ConfigOptions {
	return etcd.ConfigOptions{Probe: 10 * time.Millisecond, Sweep: 10 * time.Millisecond, Patience: time.Minute}
}

// calm is for large objects: each sweep reads all of them, and making room for them
// takes a slow disk its time.
func calm() etcd.ConfigOptions {
	return etcd.ConfigOptions{Probe: 100 * time.Millisecond, Sweep: 500 * time.Millisecond, Patience: time.Minute}
}
