package e2e

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/kubelet"
)

// kubeletNode is the node of the hub's pods. It has the address of a kubelet.
const kubeletNode = `apiVersion: v1
kind: Node
metadata: {name: node-1}
`

const kubeletNodeStatus = `apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  addresses: [{type: InternalIP, address: %s}]
  daemonEndpoints: {kubeletEndpoint: {Port: %d}}
`

// podsOfTheHub are a namespace with a pod as which istioctl finds the hub, and with the account of which it asks for a token.
const podsOfTheHub = `apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: %[1]s}
---
apiVersion: v1
kind: Pod
metadata: {name: isthmus-1, namespace: %[1]s, labels: {app: istiod, istio.io/rev: default}}
spec:
  nodeName: node-1
  containers: [{name: isthmus, image: none}]
`

const podsOfTheHubStatus = `apiVersion: v1
kind: Pod
metadata: {name: isthmus-1, namespace: %s}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
`

// TestK81IstioctlWithoutAnAddress: Istio's own istioctl, unmodified, gets no address. It finds the hub's pods, forwards a
// port to them by a real API server, and shows a token that this API server made. With the account of another namespace, which is not
// named in debug.clients, it sees nothing.
func TestK81IstioctlWithoutAnAddress(t *testing.T) {
	w := newAgentFixture(t, `debug: {clients: ["spiffe://cluster.local/ns/isthmus/sa/default"], tokenCluster: c1}`)
	const expected, other = 15012, 15099 // ports of the pods
	ports := map[kubelet.Port]string{}
	for _, namespace := range []string{"isthmus", "stranger"} {
		ports[kubelet.Port{Namespace: namespace, Pod: "isthmus-1", Number: expected}] = w.hub.XDS
		w.kube.Apply(fmt.Sprintf(podsOfTheHub, namespace))
		w.kube.ApplyStatus(fmt.Sprintf(podsOfTheHubStatus, namespace))
	}
	ports[kubelet.Port{Namespace: "isthmus", Pod: "isthmus-1", Number: other}] = w.hub.XDS
	node := kubelet.Start(t, w.at, ports)
	w.kube.Apply(kubeletNode)
	w.kube.ApplyStatus(fmt.Sprintf(kubeletNodeStatus, node.Addr(), node.Port()))
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
