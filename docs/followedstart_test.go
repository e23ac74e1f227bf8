package docs

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

const gettingStarted = "getting-started.md"

// writesToken does for a Secret that the reader makes what the controller of Kubernetes does: it writes a token of
// the account into it.
func (m *readersMachine) writesToken(t *testing.T, kube *testbed.Kube, namespace, secret, account string) {
	t.Helper()
	m.elsewhere = append(m.elsewhere, func(gone <-chan struct{}) {
		there := false
		testbed.WaitFor(t, patience, "the Secret "+secret, func() error {
			select {
			case <-gone:
				return nil
			default:
			}
			status := kube.Do(http.MethodGet, "/api/v1/namespaces/"+namespace+"/secrets/"+secret, nil).Status
			there = status == http.StatusOK
			if !there {
				return fmt.Errorf("the API server answers %d", status)
			}
			return nil
		})
		if !there {
			return
		}
		encoded := base64.StdEncoding.EncodeToString
		token := kube.ServiceAccountToken(testbed.TokenOptions{Namespace: namespace, Account: account})
		kube.Apply(fmt.Sprintf(`apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: %s, namespace: %s, annotations: {kubernetes.io/service-account.name: %s}}
data: {token: %s, ca.crt: %s}
`,
			secret, namespace, account, encoded([]byte(token)), encoded(kube.Admin.CA)))
	})
}

// hasConsul gives the reader a Consul datacenter with ACLs and TLS that has the service web, its CA, and its command line
// with the token of an administrator.
func (m *readersMachine) hasConsul(t *testing.T, address string) *testbed.Consul {
	t.Helper()
	m.AddLocal(address)
	consul := testbed.StartConsul(t, testbed.ConsulOptions{
		ACL: true, TLS: true, Namespace: m.Namespace, Address: netip.MustParseAddr(address),
	})
	consul.Put("/v1/catalog/register", map[string]any{
		"Node": "vm-1", "Address": "10.55.0.1",
		"Service": map[string]any{"ID": "web-1", "Service": "web", "Port": 80, "Tags": []string{"protocol=tcp"}},
	})
	write(t, filepath.Join(m.dir, "work", "consul-ca.crt"), consul.CA)
	m.shim(t, "consul", "exec "+installed(t, toolset.Consul)+` "$@"`)
	m.types("export CONSUL_HTTP_ADDR=" + consul.URL + " CONSUL_CACERT=$PWD/consul-ca.crt CONSUL_HTTP_TOKEN=" + consul.Token)
	return consul
}

// TestU67ANewUserGetsStartedAsInTheGuide follows the first pages from top to bottom: the README and getting started, with
// a Kubernetes cluster, a Consul datacenter and an Envoy. The account of the guide reads nothing else.
func TestU67ANewUserGetsStartedAsInTheGuide(t *testing.T) {
	t.Parallel()
	const readme, configFile = "../README.md", "**The config file**, with the same kubeconfig in `/etc/isthmus`. Press Ctrl-C first:"
	m := newMachine(t)
	kubeconfig, kube := m.clusterOfWeb(t, "c1", "10.0.0.6", "10.0.0.8")
	consul := m.hasConsul(t, "10.0.0.9")
	m.AddLocal("10.0.0.5") // of the page's health address
	m.reads(t, gettingStarted, "## 1. Run the sample", "## 2. Attach a Kubernetes cluster")
	m.types("isthmus describe cluster c1 | grep READY")
	m.reads(t, readme, "## A first query", "## Attach your own clusters")
	m.reads(t, readme, "## Change the mesh", "## Connect an Envoy")
	m.writesToken(t, kube, "isthmus", "isthmus-reader", "isthmus-reader")
	m.reads(t, gettingStarted, "## 2. Attach a Kubernetes cluster", configFile)
	m.types(`isthmus describe cluster c1 | grep READY
for path in /api/v1/secrets /api/v1/configmaps /api/v1/namespaces/default /api/v1/namespaces/shop/services/web /apis/apps/v1/deployments; do
  if kubectl --kubeconfig clusters/c1.yaml get --raw $path 2>error || ! grep Forbidden error; then exit 1; fi
done`)
	m.reads(t, gettingStarted, configFile, "## 3. Attach a Consul datacenter")
	m.types("isthmus describe cluster c1 | grep READY")
	m.reads(t, gettingStarted, "## 3. Attach a Consul datacenter", "## 4. Connect an Envoy")
	m.types("isthmus describe cluster dc1 | grep READY\nisthmus query -f ~/page.graphql > ~/answer.json")
	conflicts := regexp.MustCompile(`(?m)^PORT_[A-Z]+ +(port .*)$`).FindAllStringSubmatch(read(t, gettingStarted), -1)
	if len(conflicts) != 2 {
		t.Fatalf("the page shows the conflicts %q", conflicts)
	}
	for _, conflict := range conflicts {
		m.types("jq -r '.data.services.nodes[].conflicts[].message' ~/answer.json | grep '" + conflict[1] + "'")
	}
	m.reads(t, gettingStarted, "## 4. Connect an Envoy", "## 5. Production: mutual TLS")
	m.types(`[ "$(jq -r '[.data.proxies.nodes[].sync[] | select(.state == "SYNCED")] | length' ~/answer.json)" = 4 ]; kill $!`)
	m.reads(t, "install.md", "## Prepare certificates", "## Run it as a service")
	m.reads(t, gettingStarted, "## 5. Production: mutual TLS", "Before you rely on it:")
	m.types("curl -s http://10.0.0.5:8081/readyz\ncp dc1.token /etc/isthmus/token\nexport SSL_CERT_FILE=$PWD/consul-ca.crt")
	m.reads(t, readme, "## Attach your own clusters", "## Bridge networks")
	m.types(`export ISTHMUS_SERVER=https://localhost:8080
export ISTHMUS_TLS_CA=$PWD/hub-ca.crt ISTHMUS_TLS_CERT=$PWD/me.crt ISTHMUS_TLS_KEY=$PWD/me.key`)
	m.types("isthmus describe cluster c1 | grep READY\nisthmus describe cluster dc1 | grep READY")
	m.withOwn("consul.example:8501", consul.Address, "https://hub.isthmus.example", "https://localhost")
	m.do(t, true, "KUBECONFIG="+kubeconfig)
}
