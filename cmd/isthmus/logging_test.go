package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/version"
	"isthmus.dev/isthmus/xds/xdstest"
)

// logLine is a line of a log in JSON.
type logLine map[string]any

// has reports whether the line has these values; they begin those of the line.
func (l logLine) has(want logLine) bool {
	for key, value := range want {
		if !strings.HasPrefix(fmt.Sprint(l[key]), fmt.Sprint(value)) {
			return false
		}
	}
	return true
}

// lines are those of a log in JSON; there must be no others.
func (h *hubUnderTest) lines(t *testing.T) (all []logLine) {
	t.Helper()
	for text := range strings.Lines(h.log.String()) {
		var l logLine
		if err := json.Unmarshal([]byte(text), &l); err != nil && strings.HasSuffix(text, "\n") {
			t.Fatalf("a line is not JSON: %s", text)
		}
		all = append(all, l)
	}
	return all
}

// awaitLine waits for a line with these values.
func (h *hubUnderTest) awaitLine(t *testing.T, want logLine) {
	t.Helper()
	h.await(t, fmt.Sprint("the line ", want), func() error {
		if !slices.ContainsFunc(h.lines(t), func(l logLine) bool { return l.has(want) }) {
			return fmt.Errorf("the log is\n%s", h.log.String())
		}
		return nil
	})
}

// TestR46TheLogIsATimeline: the start, a change with its objects, the phases of a
// Kubernetes cluster, one line each, and a look at a cluster leaves nothing.
func TestR46TheLogIsATimeline(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	proxy := startAPIProxy(t, kube.User("reader"))
	h := startHub(t, "--log-format", "json")
	h.awaitLine(t, logLine{
		"msg": "the hub starts", "level": "INFO", "version": version.Version, "mode": "dev", "hub": "hub", "store": "embedded etcd",
		"graphql": filepath.Join(h.dir, "graphql"), "xds": filepath.Join(h.dir, "xds"), "health": filepath.Join(h.dir, "health"),
	})
	h.wantRefused(t, map[string]any{"clusterID": "looked-at", "consul": map[string]any{"address": "http://127.0.0.1:1"}}, "REACHABILITY")

	h.ask(t, "attachCluster", kubernetesInput("east", proxy.access))
	h.awaitPhase(t, "east", "READY")
	proxy.answerWith(func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	proxy.cut()
	h.awaitPhase(t, "east", "STALE")
	proxy.answerWith(nil)
	h.awaitPhase(t, "east", "READY")
	h.ask(t, "detachCluster", map[string]any{"clusterID": "east"})
	h.awaitLine(t, logLine{"msg": "cluster detached", "cluster": "east"})

	h.awaitLine(t, logLine{"msg": "configuration changed", "level": "INFO", "revision": 1, "objects": 1, "changes": "create Cluster east"})
	var phases []string
	for _, l := range h.lines(t) {
		if l["msg"] == "cluster phase changed" && l["cluster"] == "east" && l["provider"] == "Kubernetes" {
			phases = append(phases, fmt.Sprint(l["level"], " ", l["phase"]))
		}
		if l["cluster"] == "looked-at" {
			t.Errorf("the dry run logs %v", l)
		}
	}
	if want := "[INFO PENDING INFO SYNCING INFO READY WARN STALE INFO READY INFO DETACHING]"; fmt.Sprint(phases) != want {
		t.Errorf("the phases are %v, want %s", phases, want)
	}
	if _, page, err := h.get("/metrics"); err != nil || strings.Contains(page, "looked-at") {
		t.Errorf("the dry run is counted, or there is no page: %v", err)
	}
}

// TestR46TheLogTellsOfProxies: who connects, refuses and leaves.
func TestR46TheLogTellsOfProxies(t *testing.T) {
	h := startHub(t, "--log-format", "json")
	h.awaitPhase(t, "c1", "READY")
	h.awaitPhase(t, "c2", "READY")
	const node = "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local"
	client, answer := h.openClusters(t, node)
	if err := client.Nack(answer, "there is no such filter"); err != nil {
		t.Fatal(err)
	}
	h.awaitLine(t, logLine{"msg": "proxy connected", "level": "INFO", "node": node, "proxyType": "sidecar", "protocol": "delta"})
	h.awaitLine(t, logLine{
		"msg": "proxy rejected configuration", "level": "WARN", "node": node, "type": xdstest.CDS,
		"err": "there is no such filter",
	})
	client.Close()
	h.awaitLine(t, logLine{"msg": "proxy disconnected", "level": "INFO", "node": node})
}

// TestR46WhoChangesTheLogLevel: only operators, whom the log names; it names the
// authors of changes, too.
func TestR46WhoChangesTheLogLevel(t *testing.T) {
	p := startSecureProgram(t, "true", "log: {format: json, level: warn}\n")
	post := func(path, body string) (int, string) {
		t.Helper()
		answer, err := p.client.Post("http://localhost"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if status, text, err := p.get("/logging"); err != nil || status != http.StatusOK || text != "level: warn\n" {
		t.Errorf("the level is shown as %d %q, %v", status, text, err)
	}
	if status, text := post("/logging?level=loud", ""); status != http.StatusBadRequest ||
		!strings.Contains(text, `"loud" is not a level; use one of debug, info, warn, error`) {
		t.Errorf("a level that does not exist is answered %d %q", status, text)
	}
	if strings.Contains(p.log.String(), "the hub starts") {
		t.Error("with level warn the log has lines of level info")
	}
	if status, text := post("/logging?level=info", ""); status != http.StatusOK || text != "level: info\n" {
		t.Errorf("the change is answered %d %q", status, text)
	}
	p.awaitLine(t, logLine{"msg": "the log level changed", "author": "admin", "logLevel": "info", "previous": "warn"})
	const manifest = `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: api, namespace: shop}\nspec: {hosts: [api.example.com], ports: [{number: 443, name: tls, protocol: TLS}]}`
	if status, text := post("/graphql", `{"query": "mutation { apply(input: {manifests: \"`+strings.ReplaceAll(manifest, `\n`, `\\n`)+
		`\", message: \"for checkout\"}) { userErrors { message } } }"}`); status != http.StatusOK || strings.Contains(text, "message") {
		t.Fatalf("the change is answered %d %s", status, text)
	}
	p.awaitLine(t, logLine{
		"msg": "configuration changed", "author": "admin", "revision": 1, "objects": 1, "comment": "for checkout",
		"changes": "create ServiceEntry shop/api",
	})
	stranger := testbed.NewAuthority(t, "ca").TLS(testbed.Subject{Name: "mallory"})
	client := &http.Client{Transport: &throughTLS{&http.Transport{DisableKeepAlives: true, TLSClientConfig: stranger}, p.graphqlAddr}}
	if answer, err := client.Post("http://localhost/logging?level=error", "", nil); err == nil {
		answer.Body.Close()
		t.Errorf("a stranger is answered %s", answer.Status)
	}
}

func TestR46LogSettingsAreChecked(t *testing.T) {
	for flag, want := range map[string]string{
		"--log-format=xml":  `"xml" is not a format; use text or json`,
		"--log-level=trace": `"trace" is not a level; use one of debug, info, warn, error`,
	} {
		if code, _, text := command(t, append(sockets(shortDir(t)), flag)...); code != cmdutil.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit %d with %q", flag, code, text)
		}
	}
}
