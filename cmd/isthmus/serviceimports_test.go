package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

const importsConfig = `clusters:
- {id: c1, provider: Kubernetes, kubernetes: {kubeconfig: %[1]s/c1, serviceImports: true}}
- {id: c2, provider: Kubernetes, kubernetes: {kubeconfig: %[1]s/c2}}
`

const importsSettings = `apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec: {sources: [{cluster: c2, namespaces: [shop], kinds: [ServiceExport.multicluster.x-k8s.io]}]}
`

const stickyService = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 600}}, ports: [{name: http, port: 80}]}
`

const webExport = `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: web, namespace: shop}
`

// startImporting is a hub between two API servers: c1, whose ServiceImports it writes, and c2,
// whose ServiceExports it reads. Its accounts have the rights of the shipped manifests alone.
func startImporting(t *testing.T) (h *hubUnderTest, c1, c2 *testbed.Kube) {
	t.Helper()
	c1, writes := startReader(t, "c1", "service-imports.yaml")
	c2, reads := startReader(t, "c2", "custom-resources.yaml")
	installKinds(t, c1, "mcs-api", "serviceimports.multicluster.x-k8s.io")
	installKinds(t, c2, "mcs-api", "serviceexports.multicluster.x-k8s.io")
	c1.Apply(strings.Split(stickyService, "---\n")[0])
	c2.Apply(strings.Split(stickyService, "---\n")...)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"c1": string(writes.Kubeconfig()), "c2": string(reads.Kubeconfig()), "config.yaml": fmt.Sprintf(importsConfig, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h = startHub(t, "--config", filepath.Join(dir, "config.yaml"))
	h.awaitPhase(t, "c1", "READY")
	h.awaitPhase(t, "c2", "READY")
	return h, c1, c2
}

// TestG77ServiceImportsOfTheWholeProgram: an export in one cluster is an import in another, with
// what the Service says about clients that stay, and is counted; without the export it goes.
func TestG77ServiceImportsOfTheWholeProgram(t *testing.T) {
	t.Parallel()
	h, c1, c2 := startImporting(t)
	if wrong := h.applied(t, importsSettings); wrong != "" {
		t.Fatal(wrong)
	}
	c2.Apply(webExport)
	const path = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceimports/web"
	h.await(t, "the ServiceImport", func() error {
		text := string(c1.Do(http.MethodGet, path, nil).Body)
		for _, want := range []string{`"sessionAffinity":"ClientIP"`, `"timeoutSeconds":600`, `"port":80`, `"clusters":[{"cluster":"c2"}]`} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("it lacks %s: %s", want, text)
			}
		}
		return nil
	})
	h.await(t, "the metrics", func() error {
		if h.hasMetrics(`isthmus_cluster_serviceimport_writes_total{cluster="c1"} 0`) == nil {
			return errors.New("no write is counted")
		}
		return h.hasMetrics(`isthmus_cluster_serviceimport_writes_total{cluster="c2"} 0`)
	})
	c2.Delete(webExport)
	h.await(t, "the end of the ServiceImport", func() error {
		if answer := c1.Do(http.MethodGet, path, nil); answer.Status != http.StatusNotFound {
			return fmt.Errorf("the server answers %d", answer.Status)
		}
		return nil
	})
}
