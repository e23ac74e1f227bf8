// Package e2e runs the hub's own binary between real clusters and real Envoys:
// requests leave a captured workload and arrive in every cluster.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// patience is how long a test waits for what must come: long enough for a machine
// that has other work.
const patience = 3 * time.Minute

// hub is the hub's own program, run as an operator would run it.
type hub struct{ *testbed.Hub }

type hubOptions struct {
	config string   // Of the config file; empty: none.
	args   []string // Besides --dev and the addresses.
	early  bool     // Return as soon as the program runs.
}

// startHub runs a hub with --dev on loopback and returns when it is ready. A race
// or a panic in it fails the test at its end.
func startHub(t *testing.T, o hubOptions) *hub {
	t.Helper()
	h := &hub{}
	t.Cleanup(func() {
		if h.Hub != nil {
			noPanic(t, h.Hub)
		}
	})
	h.Hub = testbed.StartHub(t, testbed.HubOptions{Program: binary.Path(t), Config: o.config, Args: o.args, Early: o.early})
	return h
}

// noPanic fails the test if the hub had a race or a panic.
func noPanic(t *testing.T, h *testbed.Hub) {
	t.Helper()
	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "fatal error:"} {
		if bytes.Contains(h.Output(), []byte(bad)) {
			t.Errorf("the hub printed %q", bad)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get reads a URL and wants status 200.
func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d: %.300s", url, answer.StatusCode, body)
	}
	return string(body), err
}

// operate sends an operation and returns the answer's data.
func (h *hub) operate(operation string, variables map[string]any) (json.RawMessage, error) {
	var data json.RawMessage
	err := h.Query(operation, variables, &data)
	return data, err
}

// query asks the GraphQL API and reads its data.
func (h *hub) query(query string, into any) error { return h.Query(query, nil, into) }

type endpoint struct {
	Address, ClusterID, NetworkID string
	Ports                         []struct {
		Name   string
		Number int
	}
}

type conflict struct {
	Kind, Message string
	ClusterIDs    []string
}

type service struct {
	Ports []struct {
		Name       string
		Number     int
		ClusterIDs []string
	}
	ClusterVIPs []struct {
		ClusterID string
		Addresses []string
	}
	Endpoints struct{ Nodes []endpoint }
	Conflicts []conflict
}

// service returns what the hub knows of a hostname, nil if nothing.
func (h *hub) service(hostname string) (*service, error) {
	var a struct{ Service *service }
	err := h.query(fmt.Sprintf(`{ service(hostname: %q) {
		ports { name number clusterIDs } clusterVIPs { clusterID addresses } conflicts { kind message clusterIDs }
		endpoints(first: 100) { nodes { address clusterID networkID ports { name number } } }
	} }`, hostname), &a)
	return a.Service, err
}

// endpoints returns the service's endpoints as ADDRESS@CLUSTER.
func (h *hub) endpoints(hostname string) (map[string]bool, error) {
	found := map[string]bool{}
	s, err := h.service(hostname)
	if err == nil && s == nil {
		err = fmt.Errorf("there is no service %s", hostname)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range s.Endpoints.Nodes {
		found[e.Address+"@"+e.ClusterID] = true
	}
	return found, nil
}

type problem struct{ Code, Object, Field, Message string }

type cluster struct {
	ClusterID, Provider, NetworkID string
	Status                         struct{ Phase, Message string }
	Problems                       struct{ Nodes []problem }
}

// clusters returns what the hub reports about its clusters.
func (h *hub) clusters() ([]cluster, error) {
	var a struct{ Clusters struct{ Nodes []cluster } }
	err := h.query(`{ clusters(first: 20) { nodes {
		clusterID provider networkID status { phase message }
		problems(first: 100) { nodes { code object field message } }
	} } }`, &a)
	return a.Clusters.Nodes, err
}

// cluster returns what the hub reports about one.
func (h *hub) cluster(id string) (cluster, error) {
	all, err := h.clusters()
	if err != nil {
		return cluster{}, err
	}
	at := slices.IndexFunc(all, func(c cluster) bool { return c.ClusterID == id })
	if at < 0 {
		return cluster{}, fmt.Errorf("cluster %s is not listed", id)
	}
	return all[at], nil
}

// phase returns what the hub reports about a cluster's link.
func (h *hub) phase(id string) (phase, message string, err error) {
	c, err := h.cluster(id)
	return c.Status.Phase, c.Status.Message, err
}

// inPhase is an error unless the cluster is in that phase.
func (h *hub) inPhase(id, want string) error {
	phase, message, err := h.phase(id)
	if err == nil && phase != want {
		err = fmt.Errorf("%s is %s: %s", id, phase, message)
	}
	return err
}
