package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const patience = 3 * time.Minute

// binary is the program that the documents describe.
var binary = testbed.NewBinary()

func TestMain(m *testing.M) { os.Exit(binary.Main(m)) }

// isthmus runs a command to its end and returns all that it prints, and its exit
// code.
func isthmus(t *testing.T, args ...string) (string, int) {
	t.Helper()
	path := binary.Path(t) // may build it first
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("running isthmus %v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// hub is a running hub and how to ask it.
type hub struct {
	*testbed.Process
	client *http.Client
	health *http.Client
	url    string
	socket string // of GraphQL, of a hub that has one
	xds    string // the same of xDS
}

// startHub runs a hub with --dev on unix sockets and returns when it is ready.
func startHub(t *testing.T, args ...string) *hub {
	t.Helper()
	dir := shortDir(t)
	h := &hub{
		client: socketClient(filepath.Join(dir, "graphql")), url: "http://localhost", socket: filepath.Join(dir, "graphql"),
		xds: filepath.Join(dir, "xds"),
	}
	h.start(t, dir, append([]string{
		"--dev", "--graphql-addr", "unix:" + filepath.Join(dir, "graphql"), "--xds-addr",
		"unix:" + filepath.Join(dir, "xds"),
	}, args...))
	return h
}

func (h *hub) start(t *testing.T, dir string, args []string) {
	t.Helper()
	health := filepath.Join(dir, "health")
	h.health = socketClient(health)
	h.Process = testbed.StartProgram(t, testbed.ProgramOptions{
		Name: "isthmus", Path: binary.Path(t),
		Args:  append([]string{"serve", "--data-dir", filepath.Join(dir, "data"), "--health-addr", "unix:" + health}, args...),
		Ready: func(ctx context.Context) error { return get(ctx, h.health, "http://localhost/readyz") },
	})
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", url, answer.StatusCode)
	}
	return nil
}

// post asks a query and returns the whole answer.
func (h *hub) post(query string) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return nil, err
	}
	answer, err := h.client.Post(h.url+"/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var whole bytes.Buffer
	_, err = whole.ReadFrom(answer.Body)
	return whole.Bytes(), err
}

// await asks a query until its data, read into the value, satisfies the check.
func (h *hub) await(t *testing.T, what, query string, into any, check func() error) {
	t.Helper()
	testbed.WaitFor(t, patience, what, func() error {
		answer, err := h.post(query)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(answer, into); err != nil {
			return fmt.Errorf("%w: %.300s", err, answer)
		}
		return check()
	})
}

func socketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
}

// shortDir is a folder whose path is short enough for unix sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "docs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
