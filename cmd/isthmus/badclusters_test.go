package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// wantRefused looks at a cluster that must be refused with that code alone, and
// returns the message.
func (h *hubUnderTest) wantRefused(t *testing.T, input map[string]any, code string) string {
	t.Helper()
	input["dryRun"] = true
	got := h.ask(t, "attachCluster", input)
	if got.refusals() != code {
		t.Fatalf("refused with %q (%+v), want %s", got.refusals(), got.UserErrors, code)
	}
	return got.UserErrors[0].Message
}

// TestBK05PrivateCAWithoutItsData: the system's roots decide, never nobody.
func TestBK05PrivateCAWithoutItsData(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	reader := kube.User("reader")
	bare := strings.ReplaceAll(string(reader.Kubeconfig()), "    certificate-authority-data: "+
		base64.StdEncoding.EncodeToString(reader.CA)+"\n", "")
	if strings.Contains(bare, "certificate-authority-data") {
		t.Fatal("the kubeconfig has its CA still")
	}
	dir := shortDir(t)
	h := startHub(t, "--kubeconfig-dir", dir)
	said := h.wantRefused(t, map[string]any{"clusterID": "east", "kubernetes": map[string]any{"kubeconfig": bare}}, "SERVER_CERTIFICATE")
	if !strings.Contains(said, "unknown authority") || !strings.Contains(said, "certificate-authority-data") {
		t.Errorf("the message is %q", said)
	}
	write(t, filepath.Join(dir, "west.yaml"), bare)
	if c := h.awaitPhase(t, "west", "STALE"); !strings.Contains(c.Status.Message, "unknown authority") {
		t.Errorf("the message is %q", c.Status.Message)
	}
}

// TestBK16OneClusterInFolderAndObject: the second ID of an API server is refused
// although nobody looked at it before.
func TestBK16OneClusterInFolderAndObject(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	dir := shortDir(t)
	h := startHub(t, "--kubeconfig-dir", dir)
	write(t, filepath.Join(dir, "east.yaml"), string(kube.User("reader").Kubeconfig()))
	h.awaitPhase(t, "east", "READY")
	write(t, filepath.Join(dir, "west.yaml"), string(kube.User("reader").Kubeconfig()))
	if c := h.awaitPhase(t, "west", "FAILED"); !strings.Contains(c.Status.Message, "attached already, as east") {
		t.Errorf("the message is %q", c.Status.Message)
	}
	h.awaitProblem(t, "west", "DUPLICATE_CLUSTER", "east")
	var answer struct {
		Service *struct{ Endpoints struct{ TotalCount int } }
	}
	if err := h.query(`{service(hostname: "web.shop.svc.cluster.local") {endpoints {totalCount}}}`, &answer); err != nil ||
		answer.Service == nil || answer.Service.Endpoints.TotalCount != 1 {
		t.Errorf("the service is %+v, %v; want one endpoint", answer.Service, err)
	}
	h.awaitPhase(t, "east", "READY")
}

// TestBK17RightsTooNarrowAndTooWide names each missing verb, and warns of too many.
func TestBK17RightsTooNarrowAndTooWide(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{
		{Name: "nobody"},
		{Name: "all", Groups: []string{"system:masters"}},
	}})
	h := startHub(t)
	narrow := h.ask(t, "attachCluster", kubernetesInput("east", kube.User("nobody"), "dryRun", true))
	for _, right := range []string{"list services", "watch services", "list endpointslices", "watch pods", "list nodes", "list namespaces"} {
		if len(narrow.UserErrors) == 0 || narrow.UserErrors[0].Code != "RIGHTS" || !strings.Contains(narrow.UserErrors[0].Message, right) {
			t.Errorf("%s is not missing in %+v", right, narrow.UserErrors)
		}
	}
	wide := h.ask(t, "attachCluster", kubernetesInput("east", kube.User("all"), "dryRun", true))
	if wide.refusals() != "" || wide.codes("WARNING") != "RIGHTS_TOO_WIDE" {
		t.Errorf("with all rights: %+v", wide)
	}
}

// TestBK18WhatIsNoAPIServer: a page is refused, and nothing of it repeated.
func TestBK18WhatIsNoAPIServer(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	proxy := startAPIProxy(t, kube.User("reader"))
	h := startHub(t)
	const page = "<html>canary-of-the-page</html>"
	proxy.answerWith(func(w http.ResponseWriter, _ *http.Request, _ int) bool { fmt.Fprint(w, page); return true })
	if said := h.wantRefused(t, kubernetesInput("east", proxy.access), "NOT_API_SERVER"); strings.Contains(said, "canary") {
		t.Errorf("the message repeats the page: %q", said)
	}
	proxy.answerWith(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		http.Redirect(w, r, "/canary-of-the-page", http.StatusFound)
		return true
	})
	h.wantRefused(t, kubernetesInput("east", proxy.access), "NOT_API_SERVER")
}

// TestBK19ServerThatIsAnotherEachTime: what says another version each time is not
// attached; where it begins to later, or an API group comes and goes, the cluster is
// frozen as it was, in GraphQL and in the metrics, until it is steady.
func TestBK19ServerThatIsAnotherEachTime(t *testing.T) {
	t.Parallel()
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	kube.GrantRead("reader")
	kube.Apply(strings.Split(attachedService, "---\n")...)
	proxy := startAPIProxy(t, kube.User("reader"))
	h := startHub(t)
	versions := func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.URL.Path != "/version" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"major":"1","minor":"%d"}`, 30+n%7)
		return true
	}
	proxy.answerWith(versions)
	h.wantRefused(t, kubernetesInput("east", proxy.access), "API_UNSTABLE")
	proxy.answerWith(nil)
	if got := h.ask(t, "attachCluster", kubernetesInput("east", proxy.access)); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	services := h.awaitPhase(t, "east", "READY").Services.TotalCount
	frozen := func(why string) {
		t.Helper()
		c := h.awaitPhase(t, "east", "HELD")
		if c.Services.TotalCount != services || !strings.Contains(c.Status.Message, why) {
			t.Errorf("it is %+v, want %d services and %q", c, services, why)
		}
		if _, text, err := h.get("/metrics"); err != nil || !strings.Contains(text, `isthmus_cluster_phase{cluster="east",phase="HELD"} 1`) {
			t.Errorf("the metrics do not say that it is held: %v", err)
		}
	}
	proxy.answerWith(versions)
	frozen("another version each time")
	proxy.answerWith(nil)
	h.awaitPhase(t, "east", "READY")
	proxy.answerWith(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.Contains(r.URL.Path, "discovery.k8s.io") {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	})
	proxy.cut()
	frozen("does not offer endpointslices.discovery.k8s.io")
	proxy.answerWith(nil)
	if c := h.awaitPhase(t, "east", "READY"); c.Services.TotalCount != services {
		t.Errorf("afterwards it is %+v", c)
	}
}

const nodeWithPods = `apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: %[1]s, podCIDRs: [%[1]s]}
`

// TestBK20OneNameForTwoNetworksOrMeshes: a cluster whose pods have addresses of
// another one's on a network of the same name, or whose trust domain has other
// roots, is refused.
func TestBK20OneNameForTwoNetworksOrMeshes(t *testing.T) {
	t.Parallel()
	home, access := startHome(t, "trust.yaml")
	away := startAway(t)
	h := startHub(t)
	if got := h.ask(t, "attachCluster", kubernetesInput("east", away.User("first"), "networkID", "n1")); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitPhase(t, "east", "READY")
	home.Apply(fmt.Sprintf(nodeWithPods, "10.66.0.0/24"))
	if said := h.wantRefused(t, kubernetesInput("west", access, "networkID", "n1"), "NETWORK_CLASH"); !strings.Contains(said, "10.66.0.1") ||
		!strings.Contains(said, "east") {
		t.Errorf("the message is %q", said)
	}
	if got := h.ask(t, "attachCluster", kubernetesInput("west", access, "networkID", "n2", "dryRun", true)); got.refusals() != "" {
		t.Errorf("on a network of its own: %+v", got)
	}
	roots := func(domain string) {
		home.Apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata: {mesh: %q}\n",
			"trustDomain: "+domain+"\n"),
			fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio-ca-root-cert, namespace: istio-system}\ndata: {root-cert.pem: %q}\n", access.CA))
	}
	roots("cluster.local")
	if said := h.wantRefused(t, kubernetesInput("west", access, "networkID", "n2"),
		"TRUST_DOMAIN"); !strings.Contains(said, `"cluster.local"`) {
		t.Errorf("the message is %q", said)
	}
	roots("other.example")
	if got := h.ask(t, "attachCluster", kubernetesInput("west", access, "networkID", "n2", "dryRun", true)); got.refusals() != "" ||
		!strings.Contains(got.codes("WARNING"), "TRUST_DOMAIN") {
		t.Errorf("with a trust domain of its own: %+v", got)
	}
}
