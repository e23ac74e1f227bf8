package docs

import (
	"net/netip"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

const operations = "operations.md"

// TestU83AHubIsUpgradedAndGetsAnotherAsInTheGuide follows the page for operators: a hub with a proxy and an attached cluster is
// upgraded, moves to an external etcd, and gets a second hub, which the proxy is served by when the first one stops. The second hub
// is on another address of the same machine, and runs without the unit.
func TestU83AHubIsUpgradedAndGetsAnotherAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.AddLocal("10.0.0.6")
	kube := testbed.StartKube(t, testbed.KubeOptions{Namespace: m.Namespace, Address: netip.MustParseAddr("10.0.0.6")})
	write(t, filepath.Join(m.dir, "work", "c1.kubeconfig"), kube.Kubeconfig())
	authority := testbed.NewAuthority(t, "etcd")
	etcd := testbed.StartEtcd(t, testbed.EtcdOptions{Namespace: m.Namespace, TLS: authority})
	cert, key := authority.Issue(testbed.Subject{Name: "isthmus"})
	for file, content := range map[string][]byte{"etcd-ca.crt": authority.PEM, "etcd.crt": cert, "etcd.key": key} {
		write(t, filepath.Join(m.dir, "work", file), content)
	}
	m.installs(t)
	m.types("isthmus cluster attach c1 --kubeconfig c1.kubeconfig --network n1")
	m.reads(t, "identity.md", "### Certificates from a CA of your own", "## Who may be which node")
	m.types(`for address in 127.0.0.1 127.0.0.2; do echo $address hub.isthmus.example; done >> /etc/hosts
sudo install -m 0644 hub-ca.crt proxy.crt proxy.key /etc/isthmus/`)
	m.types("envoy -c deploy/envoy/sidecar.yaml --component-log-level config:debug")
	const synced = "isthmus get proxies | grep web-1.*SYNCED"
	m.types(synced)
	const program = "readlink /proc/$(cat /etc/isthmus.pid)/exe"
	m.reads(t, operations, "2. [Build](install.md#build) the new version, and replace the program. The hub that runs is not affected:",
		"3. Restart the hub. It ends with SIGTERM, and proxies keep their configuration meanwhile:")
	m.types(program + " | grep deleted") // it runs, and is the old one
	m.reads(t, operations, "3. Restart the hub. It ends with SIGTERM, and proxies keep their configuration meanwhile:",
		"If several hubs share one etcd, do steps 2 to 4 with one after the other.")
	m.types(program + " | grep '/usr/local/bin/isthmus$'\n" + synced)
	m.getsAnotherHub(t)
	m.types("sudo systemctl stop isthmus\nexport ISTHMUS_SERVER=https://127.0.0.2:8080\n" + synced + "\nisthmus describe cluster c1 | grep READY")
	m.withOwn(`"https://etcd-1.example:2379", "https://etcd-2.example:2379", "https://etcd-3.example:2379"`, `"`+etcd.URL+`"`,
		"hub-1.example", "127.0.0.1", "hub-2.example", "127.0.0.2", "0.0.0.0:", "127.0.0.1:",
		"IP:127.0.0.1", "IP:127.0.0.1,IP:127.0.0.2,DNS:hub.isthmus.example")
	m.do(t, true)
}

// getsAnotherHub has the reader move the hub to the external etcd, and start a second one.
func (m *readersMachine) getsAnotherHub(t *testing.T) {
	t.Helper()
	const settings = "apiVersion: isthmus.dev/v1\nkind: MeshSettings\nmetadata: {name: default}\nspec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}\n"
	write(t, filepath.Join(m.dir, "work", "settings.yaml"), []byte(settings))
	m.types("isthmus apply -f settings.yaml")
	m.reads(t, operations, "### Keep manifests", "### Apply them to another hub")
	m.types("sudo install -m 0640 -o root -g isthmus etcd-ca.crt etcd.crt etcd.key /etc/isthmus/")
	m.reads(t, operations, "2. On its machine, copy the seal key to where the config file names it. The copy is for all machines:",
		"3. Add these lines to its config file, with the certificates for your etcd:")
	m.writes(t, "etcd.yaml", operations, "yaml", "etcd-1.example")
	m.types("cat etcd.yaml | sudo tee -a /etc/isthmus/isthmus.yaml")
	m.reads(t, operations, "4. Restart it. When it answers, apply the manifests. Give clusters their [credentials](#apply-them-to-another-hub) again:",
		"5. On each other machine, [install](install.md) a hub, with the folder `/etc/isthmus` of the first one and a certificate of its")
	m.types("isthmus cluster rotate c1 --kubeconfig c1.kubeconfig\nisthmus describe cluster c1 | grep READY")
	m.types("isthmus serve --config /etc/isthmus/isthmus.yaml --data-dir second --graphql-addr 127.0.0.2:8080 --xds-addr 127.0.0.2:15010" +
		" --health-addr 127.0.0.2:8081 --tls-cert hub.crt --tls-key hub.key --tls-client-ca clients.crt")
	m.reads(t, operations, "6. Compare what the hubs say. The revisions are the same:", "### Connect proxies to several hubs")
	m.types(`revision() { isthmus query '{ hub { revision } }' --server https://$1:8080 | jq .data.hub.revision; }
again '[ "$(revision 127.0.0.1)" = "$(revision 127.0.0.2)" ]'
isthmus get meshsettings default -o yaml --server https://127.0.0.2:8080 | grep REGISTRY_ONLY
sed 's/REGISTRY_ONLY/ALLOW_ANY/' settings.yaml | isthmus apply -f - --wait=delivered > waited 2>&1 || true
cat waited; grep '1 other hub' waited`)
}
