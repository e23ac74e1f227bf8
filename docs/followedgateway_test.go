package docs

import (
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestU79ClientsOfAGatewayAreVerifiedAsInTheGuide follows the page about the Gateway API with a Gateway that wants certificates of its
// clients. The proxy is an Envoy at a unix socket of a hub for trying out.
func TestU79ClientsOfAGatewayAreVerifiedAsInTheGuide(t *testing.T) {
	t.Parallel()
	const page = "gateway-api.md"
	m := newMachine(t)
	m.AddLocal("10.0.0.7")
	kubeconfig, kube := m.clusterOfWeb(t, "c1", "10.0.0.6", "10.0.0.8")
	testbed.Pod{
		Namespace: "shop", Name: "edge-1", Account: "edge", Labels: "{gateway.networking.k8s.io/gateway-name: edge}", Address: "10.0.0.7",
	}.Run(kube)
	m.types("kubectl apply -f deploy/kubernetes/reader.yaml\nsed 's/namespace: edge/namespace: shop/' deploy/kubernetes/secrets.yaml | kubectl apply -f -")
	m.types(`echo "clusters: [{id: c1, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: $KUBECONFIG, secrets: true}}]" > isthmus.yaml`)
	m.startsHub("--config isthmus.yaml --xds-addr unix:$PWD/xds")
	m.reads(t, page, "## Serve a Gateway of a cluster", "4. Deploy the proxies of the Gateway: Envoys that [connect to the hub](xds.md) as routers. The pods must")
	m.types(`isthmus proxy bootstrap --type gateway --name edge-1 --namespace shop --cluster-id c1 --ip 10.0.0.7 \
  --labels gateway.networking.k8s.io/gateway-name=edge --hub unix:$PWD/xds --dir edge-1`)
	m.types("envoy -c edge-1/envoy.yaml")
	m.reads(t, "install.md", "## Prepare certificates", "## Run it as a service")
	m.types("cp hub.crt web.crt\ncp hub.key web.key")
	m.reads(t, page, "## Verify clients", "## Add listeners of others")
	const ask = "curl -sk --resolve web.example.com:8443:10.0.0.7 https://web.example.com:8443/"
	m.types("again '" + ask + " --cert me.crt --key me.key | grep web-of-c1'\nif " + ask + "; then exit 1; fi")
	m.do(t, false, "KUBECONFIG="+kubeconfig)
}
