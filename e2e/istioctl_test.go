package e2e

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/kubelet"
)

// TestK81IstioctlWithoutAnAddress: Istio's own istioctl, unmodified, gets no address. It finds the hub's pods, forwards a
// port to them by a real API server, and shows a token that this API server made. With the account of another namespace, which is not
// named in debug.clients, it sees nothing.
func TestK81IstioctlWithoutAnAddress(t *testing.T) {
	w := newAgentFixture(t, `debug: {clients: ["spiffe://cluster.local/ns/isthmus/sa/default"], tokenCluster: c1}`)
	const expected, other = 15012, 15099 // ports of the pods
	node := kubelet.Start(t, w.at, w.kube)
	kubelet.Hub{Namespace: "isthmus", Ports: map[int]string{expected: w.hub.XDS, other: w.hub.XDS}}.Run(node)
	kubelet.Hub{Namespace: "stranger", Ports: map[int]string{expected: w.hub.XDS}}.Run(node)
	w.pod("client").agent.WaitReady(patience)
	istioctl := func(args ...string) (string, error) { return testbed.IstioctlOf(t, w.at, w.kube.Kubeconfig(), args...) }
	for command, want := range map[string]string{
		"proxy-status":                        "\nclient.shop ",
		"proxy-status -v 1":                   "SYNCED (",
		"proxy-status --xds-port 15099":       "\nclient.shop ",
		"proxy-status --xds-label app=istiod": "\nclient.shop ",
		"x internal-debug clusterz":           `"id": "c1"`,
		"x internal-debug syncz":              `"proxy": "client.shop"`,
		"x version":                           "(1 proxies)",
	} {
		output, err := istioctl(append(strings.Fields(command), "-i", "isthmus")...)
		if err != nil || !strings.Contains(output, want) {
			t.Errorf("istioctl %s: %v, want %q in\n%s", command, err, want, output)
		}
	}
	output, err := istioctl("proxy-status", "-i", "stranger", "--timeout", "5s")
	if err == nil || !strings.Contains(output, "spiffe://cluster.local/ns/stranger/sa/default may not ask about this hub") {
		t.Errorf("with the account of another namespace: %v\n%s", err, output)
	}
	noPanic(t, w.hub)
}
