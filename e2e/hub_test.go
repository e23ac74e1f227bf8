// Package e2e runs the hub's own binary between real clusters and real Envoys:
// requests leave a captured workload and arrive in every cluster.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// hub is the hub's own program, run as an operator would run it.
type hub struct {
	*testbed.Process
	graphql, health string
	socket          string // xDS
}

// buildHub builds the binary under test with the race detector.
func buildHub(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "isthmus")
	if out, err := exec.Command("go", "build", "-race", "-o", path, "isthmus.dev/isthmus/cmd/isthmus").CombinedOutput(); err != nil {
		t.Fatalf("building the hub: %v\n%s", err, out)
	}
	return path
}

func startHub(t *testing.T, config string) *hub {
	t.Helper()
	dir := shortDir(t)
	loopback := netip.MustParseAddr("127.0.0.1")
	h := &hub{
		graphql: fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, loopback)),
		health:  fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, loopback)),
		socket:  filepath.Join(dir, "xds.sock"),
	}
	file := filepath.Join(dir, "isthmus.yaml")
	write(t, file, config)
	h.Process = testbed.StartProgram(t, testbed.ProgramOptions{
		Name: "isthmus", Path: buildHub(t),
		Args: []string{
			"serve", "--dev", "--config", file, "--data-dir", filepath.Join(dir, "data"),
			"--graphql-addr", h.graphql, "--health-addr", h.health, "--xds-addr", "unix:" + h.socket,
		},
		Ready: h.ready,
	})
	return h
}

// shortDir is a folder whose path is short enough for a unix socket and that
// a sidecar's user may enter.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "isthmus-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ready is the hub's own word, and opens the socket to the sidecars' user.
func (h *hub) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.health+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %d", answer.StatusCode)
	}
	return os.Chmod(h.socket, 0o666)
}

// query asks the GraphQL API and reads its data.
func (h *hub) query(query string, into any) error {
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Post("http://"+h.graphql+"/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var envelope struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return err
	}
	if len(envelope.Errors) > 0 {
		return errors.New(envelope.Errors[0].Message)
	}
	return json.Unmarshal(envelope.Data, into)
}

type serviceAnswer struct {
	Service *struct {
		ClusterVIPs []struct {
			ClusterID string
			Addresses []string
		}
		Endpoints struct {
			Nodes []struct{ Address, ClusterID string }
		}
	}
}

// endpoints returns the service's endpoints as ADDRESS@CLUSTER.
func (h *hub) endpoints(hostname string) (map[string]bool, error) {
	var a serviceAnswer
	err := h.query(fmt.Sprintf(`{ service(hostname: %q) { clusterVIPs { clusterID addresses } endpoints(first: 100) { nodes { address clusterID } } } }`, hostname), &a)
	if err != nil || a.Service == nil {
		return nil, errors.Join(err, fmt.Errorf("service %s: %+v", hostname, a.Service))
	}
	found := map[string]bool{}
	for _, e := range a.Service.Endpoints.Nodes {
		found[e.Address+"@"+e.ClusterID] = true
	}
	return found, nil
}

// phase returns what the hub says of a cluster.
func (h *hub) phase(cluster string) (phase, message string, err error) {
	var a struct {
		Clusters struct {
			Nodes []struct {
				ClusterID string
				Status    struct{ Phase, Message string }
			}
		}
	}
	if err := h.query(`{ clusters { nodes { clusterID status { phase message } } } }`, &a); err != nil {
		return "", "", err
	}
	for _, c := range a.Clusters.Nodes {
		if c.ClusterID == cluster {
			return c.Status.Phase, c.Status.Message, nil
		}
	}
	return "", "", fmt.Errorf("cluster %s is not listed", cluster)
}
