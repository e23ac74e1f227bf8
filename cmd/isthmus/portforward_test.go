package main

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/kubelet"
)

// istiodPod is a pod of the hub as istioctl looks for it, on a node whose kubelet has the address.
const istiodPod = `apiVersion: v1
kind: Namespace
metadata: {name: isthmus}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: v1
kind: Pod
metadata:
  name: isthmus-1
  namespace: isthmus
  labels: {app: istiod, istio: pilot, istio.io/rev: default}
  annotations: {prometheus.io/port: "%d"}
spec:
  nodeName: node-1
  containers: [{name: isthmus, image: isthmus}]
`

const istiodStatus = `apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  addresses: [{type: InternalIP, address: %s}]
  daemonEndpoints: {kubeletEndpoint: {Port: %d}}
---
apiVersion: v1
kind: Pod
metadata: {name: isthmus-1, namespace: isthmus}
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}]
`

// TestIstioctlForwardsPorts (K76, K77): commands that reach a control plane only by the port-forward of an API server get
// to the hub's health address.
func TestIstioctlForwardsPorts(t *testing.T) {
	t.Parallel()
	r := startIstioctlRig(t)
	r.sidecar()
	kube := testbed.StartKube(t, testbed.KubeOptions{Name: "home"})
	const port = 15014 // of the pod, as it says
	node := kubelet.Start(t, nil, map[kubelet.Port]string{{Namespace: "isthmus", Pod: "isthmus-1", Number: port}: r.health})
	kube.Apply(documents(fmt.Sprintf(istiodPod, port))...)
	kube.ApplyStatus(documents(fmt.Sprintf(istiodStatus, node.Addr(), node.Port()))...)
	ask := func(t *testing.T, args ...string) string {
		t.Helper()
		output, err := testbed.IstioctlOf(t, nil, kube.Kubeconfig(), append(args, "-i", "isthmus")...)
		if err != nil {
			t.Errorf("istioctl %s: %v\n%s\n%s", args, err, output, r.hub.log.String())
		}
		return output
	}
	t.Run("K76RemoteClusters", func(t *testing.T) {
		if got := ask(t, "remote-clusters"); !hasRow(got, "c1", "synced", "isthmus-1", "default") {
			t.Errorf("the clusters are\n%s", got)
		}
	})
	t.Run("K77Version", func(t *testing.T) {
		got := ask(t, "version")
		for _, want := range []string{"control plane version: development\n", "data plane version: 1.32.0 (1 proxies)"} {
			if !strings.Contains(got, want) {
				t.Errorf("the versions lack %q:\n%s", want, got)
			}
		}
	})
}

// documents are the objects of a manifest.
func documents(manifest string) []string { return strings.Split(manifest, "---\n") }

// hasRow reports whether a table has a row of these words.
func hasRow(table string, words ...string) bool {
	for line := range strings.Lines(table) {
		if strings.Join(strings.Fields(line), " ") == strings.Join(words, " ") {
			return true
		}
	}
	return false
}
