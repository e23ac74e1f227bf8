package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// clusterAnswer is what the mutations of clusters answer.
type clusterAnswer struct {
	Cluster *struct {
		ClusterID, Provider, NetworkID string
		Status                         struct{ Phase, Message string }
	}
	ClusterID  *string
	Findings   []struct{ Code, Severity, Message, Field string }
	UserErrors []struct{ Code, Message, Field string }
}

// codes are those of the findings with that severity.
func (a clusterAnswer) codes(severity string) string {
	var all []string
	for _, f := range a.Findings {
		if f.Severity == severity {
			all = append(all, f.Code)
		}
	}
	return strings.Join(all, " ")
}

func (a clusterAnswer) refusals() string {
	var all []string
	for _, e := range a.UserErrors {
		all = append(all, e.Code)
	}
	return strings.Join(all, " ")
}

// ask sends a mutation with its input as a variable; there must be an answer.
func (h *hubUnderTest) ask(t *testing.T, mutation string, input map[string]any) clusterAnswer {
	t.Helper()
	answer, err := h.tell(mutation, input)
	if err != nil {
		t.Fatalf("%s: %v\n%s", mutation, err, h.log.String())
	}
	return answer
}

// tell sends a mutation to a hub that may not answer.
func (h *hubUnderTest) tell(mutation string, input map[string]any) (clusterAnswer, error) {
	kind := strings.ToUpper(mutation[:1]) + mutation[1:] + "Input"
	fields := "cluster { clusterID provider networkID status { phase message } } findings { code severity message field } userErrors { code message field }"
	switch mutation {
	case "confirmCluster":
		fields = "cluster { clusterID status { phase } } userErrors { code message field }"
	case "detachCluster":
		fields = "clusterID userErrors { code message field }"
	}
	body, err := json.Marshal(map[string]any{
		"query":     fmt.Sprintf("mutation($input: %s!) { %s(input: $input) { %s } }", kind, mutation, fields),
		"variables": map[string]any{"input": input},
	})
	if err != nil {
		return clusterAnswer{}, err
	}
	answer, err := h.client.Post("http://localhost/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		return clusterAnswer{}, err
	}
	defer answer.Body.Close()
	var read struct {
		Data   map[string]clusterAnswer
		Errors []struct{ Message string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&read); err != nil || len(read.Errors) > 0 || answer.StatusCode != http.StatusOK {
		return clusterAnswer{}, fmt.Errorf("it answers %d %v, %w", answer.StatusCode, read.Errors, err)
	}
	return read.Data[mutation], nil
}

func kubernetesInput(id string, access testbed.Access, more ...any) map[string]any {
	in := map[string]any{"clusterID": id, "kubernetes": map[string]any{"kubeconfig": string(access.Kubeconfig())}}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return in
}

const attachedService = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.66.0.1]}]
`

// nowhere looks for secrets in every file of a folder: etcd, saved
// states, keys; plain, in base64 and escaped.
func nowhere(t *testing.T, dir string, secrets map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		notIn(t, path, data, secrets)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func notIn(t *testing.T, where string, data []byte, secrets map[string]string) {
	t.Helper()
	for name, secret := range secrets {
		escaped, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{
			secret, base64.StdEncoding.EncodeToString([]byte(secret)),
			base64.RawURLEncoding.EncodeToString([]byte(secret)), strings.Trim(string(escaped), `"`),
		} {
			if bytes.Contains(data, []byte(form)) {
				t.Errorf("%s holds %s", where, name)
			}
		}
	}
}

// TestClusterIsAttachedRotatedAndDetached goes the whole way with a real API
// server, and looks for its credentials everywhere afterwards (P22, P24).
func TestClusterIsAttachedRotatedAndDetached(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}, {Name: "second"}, {Name: "nobody"}}})
	kube.GrantRead("reader")
	kube.GrantRead("second")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	h := startHub(t)
	reader, second := kube.User("reader"), kube.User("second")
	secrets := map[string]string{"the first token": reader.Token, "the second token": second.Token}

	look := h.ask(t, "attachCluster", kubernetesInput("c1", reader, "dryRun", true))
	const all = "REACHABILITY SERVER_CERTIFICATE API_VERSION CLOCK RIGHTS RIGHTS_TOO_WIDE TRUST_DOMAIN DUPLICATE_CLUSTER ADDRESS_OVERLAP CREDENTIALS_EXPIRY DUPLICATE_CLUSTER_ID"
	if look.codes("INFO") != all || look.refusals() != "" || look.Cluster != nil {
		t.Errorf("the dry run finds %+v", look)
	}
	bad := h.ask(t, "attachCluster", kubernetesInput("c9", kube.User("nobody"), "dryRun", true))
	if bad.refusals() != "RIGHTS DUPLICATE_CLUSTER" || !strings.Contains(bad.UserErrors[0].Message, "watch endpointslices") {
		t.Errorf("without rights: %+v", bad)
	}
	attached := h.ask(t, "attachCluster", kubernetesInput("c1", reader, "networkID", "n7", "precedence", 5, "aliases",
		[]string{"Kubernetes", "gke_p_z_c"}))
	if attached.refusals() != "" || attached.Cluster == nil || attached.Cluster.NetworkID != "n7" {
		t.Fatalf("attached: %+v\n%s", attached, h.log.String())
	}
	h.awaitPhase(t, "c1", "READY")
	if _, err := h.cluster("c2"); err == nil {
		t.Error("the sample stays beside a cluster that was attached")
	}
	for name, c := range map[string]struct {
		input map[string]any
		want  string
	}{
		"R48: an alias that is taken": {
			kubernetesInput("c3", reader, "aliases", []string{"Kubernetes", "c1", "no alias"}),
			"DUPLICATE_CLUSTER_ALIAS DUPLICATE_CLUSTER_ALIAS INVALID_CLUSTER_ID DUPLICATE_CLUSTER",
		},
		"the same ID":             {kubernetesInput("c1", reader), "DUPLICATE_CLUSTER_ID"},
		"B-K16: the same cluster": {kubernetesInput("other", reader), "DUPLICATE_CLUSTER"},
		"B-K15: the hub's own ID": {kubernetesInput("hub", reader), "DUPLICATE_CLUSTER DUPLICATE_CLUSTER_ID"},
		"B-K15: no ID":            {kubernetesInput("C1/..", reader), "INVALID_CLUSTER_ID DUPLICATE_CLUSTER"},
		"B-K1: a kubeconfig that executes": {map[string]any{
			"clusterID":  "x",
			"kubernetes": map[string]any{"kubeconfig": fmt.Sprintf(kubeconfig, "exec: {command: /bin/true}")},
		}, "KUBECONFIG_EXEC"},
		"nothing": {map[string]any{"clusterID": "x"}, "INVALID_REQUEST"},
	} {
		if got := h.ask(t, "attachCluster", c.input); got.refusals() != c.want || got.Cluster != nil {
			t.Errorf("%s: refused with %q (%+v), want %q", name, got.refusals(), got.UserErrors, c.want)
		}
	}
	if got := h.ask(t, "rotateCluster", kubernetesInput("c1", kube.User("nobody"))); got.refusals() != "RIGHTS DUPLICATE_CLUSTER" {
		t.Errorf("rotated to bad credentials: %+v", got)
	}
	if got := h.ask(t, "rotateCluster", kubernetesInput("c1", second)); got.refusals() != "" || got.Cluster == nil {
		t.Errorf("rotated: %+v", got)
	}
	h.await(t, "the rotation", func() error {
		if !strings.Contains(h.log.String(), "a registry was replaced") {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if got := h.ask(t, "confirmCluster", map[string]any{"clusterID": "c1"}); got.refusals() != "NOTHING_HELD" {
		t.Errorf("confirmed: %+v", got)
	}
	h.wantNoSecrets(t, secrets)
	if got := h.ask(t, "detachCluster", map[string]any{"clusterID": "c1"}); got.refusals() != "" ||
		got.ClusterID == nil || *got.ClusterID != "c1" {
		t.Errorf("detached: %+v", got)
	}
	if c, err := h.cluster("c1"); err == nil {
		t.Errorf("after the answer it is %+v", c)
	}
	h.stop()
	nowhere(t, filepath.Join(h.dir, "data"), secrets)
	notIn(t, "the log", []byte(h.log.String()), secrets)
	left, err := filepath.Glob(filepath.Join(h.dir, "data", "last-known-good", "c1.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("on disk there is %v, %v", left, err)
	}
}

// wantNoSecrets looks through what the API shows of the configuration.
func (h *hubUnderTest) wantNoSecrets(t *testing.T, secrets map[string]string) {
	t.Helper()
	for _, query := range []string{
		`{ configObjects(filter: {kind: "Cluster"}) { nodes { name yaml } } }`,
		`{ clusters { nodes { clusterID status { message } problems { nodes { message } } } } }`,
	} {
		var answer any
		if err := h.query(query, &answer); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		data, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		notIn(t, query, data, secrets)
		if !bytes.Contains(data, []byte("c1")) {
			t.Errorf("%s shows no c1: %s", query, data)
		}
	}
	_, metrics, err := h.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	notIn(t, "/metrics", []byte(metrics), secrets)
}
