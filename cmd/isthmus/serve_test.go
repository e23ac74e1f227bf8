package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

func TestSampleFederatesTwoClusters(t *testing.T) {
	h := startHub(t)
	h.awaitPhase(t, "c1", "READY")
	h.awaitPhase(t, "c2", "READY")
	var a struct {
		Service struct {
			ClusterVIPs []struct {
				ClusterID string
				Addresses []string
			}
		}
	}
	if err := h.query(`{ service(hostname: "hello.default.svc.cluster.local") { clusterVIPs { clusterID addresses } } }`, &a); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(a.Service.ClusterVIPs); got != "[{c1 [10.1.0.1]} {c2 [10.2.0.1]}]" {
		t.Errorf("the VIPs of hello are %s", got)
	}
	const firstQuery = "{ services { nodes { hostname clusterVIPs { clusterID addresses } endpoints { totalCount } } } }"
	if !strings.Contains(h.log.String(), "/graphiql") || !strings.Contains(h.log.String(), firstQuery) {
		t.Errorf("the greeting is %s", h.log.String())
	}
	if err := h.query(firstQuery, new(any)); err != nil {
		t.Errorf("the first query of the greeting: %v", err)
	}
}

func TestAnswersOfBothAddresses(t *testing.T) {
	h := startHub(t)
	h.await(t, "the hub to be ready", func() error {
		status, body, err := h.get("/readyz")
		if err == nil && status != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
	health := socketClient(filepath.Join(h.dir, "health"))
	for name, get := range map[string]func(string) (int, string, error){
		"GraphQL": h.get,
		"health": func(path string) (int, string, error) {
			return (&hubUnderTest{client: health}).get(path)
		},
	} {
		for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ok", "/metrics": "isthmus_cluster_phase"} {
			if status, body, err := get(path); err != nil || status != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s of the %s address answers %d %.80q, %v", path, name, status, body, err)
			}
		}
	}
	for path, want := range map[string]string{"/": "/graphiql", "/graphiql": "<html", "/graphql?query=%7B__typename%7D": "Query"} {
		if status, body, err := h.get(path); err != nil || status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s answers %d %.200q, %v", path, status, body, err)
		}
	}
	if status, _, err := h.get("/nothing"); err != nil || status != http.StatusNotFound {
		t.Errorf("/nothing answers %d, %v", status, err)
	}
	request, err := http.NewRequest(http.MethodGet, "http://evil.example/graphql?query=%7B__typename%7D", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("B-G13: a foreign Host is answered %d", answer.StatusCode)
	}
}

func TestSeed18DuplicateIDWarnsIsSkippedAndShown(t *testing.T) {
	config := write(t, filepath.Join(shortDir(t), "x.yaml"),
		"clusters:\n- {id: c1, provider: Mock, network: n1}\n- {id: c1, provider: Mock, network: n2}\n- {id: c2, provider: Mock}\n")
	h := startHub(t, "--config", config)
	h.awaitPhase(t, "c2", "READY")
	c := h.awaitPhase(t, "c1", "READY")
	if len(c.Problems.Nodes) != 1 || c.Problems.Nodes[0].Code != "DUPLICATE_CLUSTER_ID" || c.Problems.Nodes[0].Field != "clusters[1].id" {
		t.Errorf("c1 shows %+v", c.Problems)
	}
	if n := strings.Count(h.log.String(), "a cluster is skipped"); n != 1 {
		t.Errorf("%d warnings: %s", n, h.log.String())
	}
}

func TestSeed19UnknownProviderStopsTheStart(t *testing.T) {
	for provider, want := range map[string]string{
		"Foo": `"Foo"`, "kubernetes": `"kubernetes"`,
		"External": "is always there", "MCP": "mcp.servers",
	} {
		config := write(t, filepath.Join(t.TempDir(), "x.yaml"), "clusters:\n- {id: c1, provider: "+provider+"}\n")
		code, _, errText := command(t, append(sockets(shortDir(t)), "--config", config)...)
		if code != cmdutil.ExitFailed || !strings.Contains(errText, want) || !strings.Contains(errText, "clusters[0].provider") {
			t.Errorf("%s: exit %d with %q", provider, code, errText)
		}
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {%s}}]
`

func TestBadClustersAreShownAndDisturbNobody(t *testing.T) {
	dir := shortDir(t)
	write(t, filepath.Join(dir, "exec"), fmt.Sprintf(kubeconfig, "exec: {command: /bin/hidden-command}"))
	config := write(t, filepath.Join(dir, "x.yaml"), fmt.Sprintf(`clusters:
- {id: good, provider: Mock}
- {id: missing, provider: Kubernetes, kubernetes: {kubeconfig: %[1]s/none}}
- {id: exec, provider: Kubernetes, kubernetes: {kubeconfig: %[1]s/exec}}
- {id: token, provider: Consul, consul: {address: "http://127.0.0.1:1", tokenFile: %[1]s/none}}
- {id: address, provider: Consul, consul: {address: "consul.example"}}
- {id: template, provider: Consul, consul: {address: "http://127.0.0.1:1", hostname: "{{.Nothing}}"}}
- {id: ca, provider: Consul, consul: {address: "https://127.0.0.1:1", tls: {ca: %[1]s/none}}}
`, dir))
	h := startHub(t, "--config", config)
	h.awaitPhase(t, "good", "READY")
	for id, want := range map[string]string{
		"missing": "kubernetes.kubeconfig", "exec": "exec", "address": "consul.address", "template": "consul.hostname", "ca": "consul.tls: ca",
	} {
		c := h.awaitPhase(t, id, "FAILED")
		if !strings.Contains(c.Status.Message, want) || strings.Contains(c.Status.Message, "hidden-command") {
			t.Errorf("%s: the message is %q, want %q", id, c.Status.Message, want)
		}
	}
	h.await(t, "the token file to be named", func() error {
		c, err := h.cluster("token")
		if err == nil && !strings.Contains(c.Status.Message, "tokenFile") {
			err = fmt.Errorf("the message is %q", c.Status.Message)
		}
		return err
	})
}

func TestKubeconfigFolderAttachesReplacesAndDetaches(t *testing.T) {
	dir := shortDir(t)
	config := write(t, filepath.Join(shortDir(t), "x.yaml"), "clusters:\n- {id: taken, provider: Mock}\n")
	bad := fmt.Sprintf(kubeconfig, "exec: {command: /bin/true}")
	write(t, filepath.Join(dir, "c7.yaml"), bad)
	write(t, filepath.Join(dir, "taken.yaml"), fmt.Sprintf(kubeconfig, "token: abc"))
	h := startHub(t, "--config", config, "--kubeconfig-dir", dir)
	c := h.awaitPhase(t, "c7", "FAILED")
	if !strings.Contains(c.Status.Message, "c7.yaml") || !strings.Contains(c.Status.Message, "exec") || c.Provider != "KUBERNETES" {
		t.Errorf("c7 is shown as %+v", c)
	}
	h.await(t, "the cluster of the config file to have a problem", func() error {
		taken, err := h.cluster("taken")
		if err == nil && (taken.Status.Phase != "READY" || len(taken.Problems.Nodes) != 1 || taken.Provider != "MOCK") {
			err = fmt.Errorf("it is %+v", taken)
		}
		return err
	})
	write(t, filepath.Join(dir, "c7.yaml"), fmt.Sprintf(kubeconfig, "token: abc"))
	c = h.awaitPhase(t, "c7", "STALE")
	if err := os.Remove(filepath.Join(dir, "c7.yaml")); err != nil {
		t.Fatal(err)
	}
	h.await(t, "c7 to be gone", func() error {
		if c, err := h.cluster("c7"); err == nil {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

func TestKubeconfigOfTheConfigFileMayBeRotated(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	file := filepath.Join(dir, "kubeconfig")
	old := fmt.Sprintf(kubeconfig, "token: abc")
	write(t, file, old)
	h := startHub(t, "--config", write(t, filepath.Join(dir, "x.yaml"), fmt.Sprintf(`clusters:
- {id: c1, provider: Kubernetes, kubernetes: {kubeconfig: %s}}
`, file)))
	c := h.awaitPhase(t, "c1", "STALE")
	if !strings.Contains(c.Status.Message, "127.0.0.1:1:") {
		t.Errorf("the message %q does not name the server", c.Status.Message)
	}
	says := func(text string) {
		t.Helper()
		h.await(t, text, func() error {
			c, err := h.cluster("c1")
			if err == nil && !strings.Contains(c.Status.Message, text) {
				err = fmt.Errorf("the message is %q", c.Status.Message)
			}
			return err
		})
	}
	write(t, file, strings.ReplaceAll(old, "127.0.0.1:1", "127.0.0.1:2"))
	says("127.0.0.1:2:")
	write(t, file, fmt.Sprintf(kubeconfig, "exec: {command: /bin/true}"))
	says("users[0].user.exec")
}

func TestF12EndDuringTheStartIsClean(t *testing.T) {
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var e Text
	if code := run(ctx, sockets(dir), cmdutil.Streams{Out: io.Discard, Err: &e}); code != cmdutil.ExitDone {
		t.Errorf("exit %d: %s", code, e.String())
	}
	h := startHub(t)
	if code := h.stop(); code != cmdutil.ExitDone {
		t.Errorf("the drained hub exits %d: %s", code, h.log.String())
	}
	if left, err := os.ReadDir(h.dir); err != nil || len(left) != 1 {
		t.Errorf("beside its data the hub leaves %v, %v", left, err)
	}
}
