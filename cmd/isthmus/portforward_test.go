package main

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/kubelet"
)

// TestIstioctlForwardsPorts (K76, K77): commands that reach a control plane only by the port-forward of an API server get
// to the hub's health address.
func TestIstioctlForwardsPorts(t *testing.T) {
	t.Parallel()
	r := startIstioctlRig(t)
	r.sidecar()
	kube := testbed.StartKube(t, testbed.KubeOptions{Name: "home"})
	const port = 15014 // of the pod, as it says
	kubelet.Hub{Namespace: "isthmus", Health: port, Ports: map[int]string{port: r.health}}.Run(kubelet.Start(t, nil, kube))
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

// hasRow reports whether a table has a row of these words.
func hasRow(table string, words ...string) bool {
	for line := range strings.Lines(table) {
		if strings.Join(strings.Fields(line), " ") == strings.Join(words, " ") {
			return true
		}
	}
	return false
}
