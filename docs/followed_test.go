package docs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// waits has the reader wait while something happens elsewhere.
func (m *readersMachine) waits(t *testing.T, event string, happens func()) {
	t.Helper()
	begin, end := filepath.Join(m.dir, "lib", event), filepath.Join(m.dir, "lib", event+"-done")
	m.types(fmt.Sprintf("touch $L/%[1]s\nuntil [ -e $L/%[1]s-done ]; do sleep 0.1; done", event))
	m.elsewhere = append(m.elsewhere, func(gone <-chan struct{}) {
		reached := false
		testbed.WaitFor(t, patience, "the reader to come to "+event, func() error {
			select {
			case <-gone:
				return nil
			default:
			}
			_, err := os.Stat(begin)
			reached = err == nil
			return err
		})
		if reached {
			happens()
			write(t, end, nil)
		}
	})
}

// installs has the reader install the hub as a service, and be its operator.
func (m *readersMachine) installs(t *testing.T) {
	t.Helper()
	m.shim(t, "systemctl", systemctl)
	m.reads(t, "install.md", "", "## Uninstall")
	m.types(`export ISTHMUS_SERVER=https://localhost:8080
export ISTHMUS_TLS_CA=$PWD/hub-ca.crt ISTHMUS_TLS_CERT=$PWD/me.crt ISTHMUS_TLS_KEY=$PWD/me.key`)
}

// envoySays has the reader run the sidecar after an edit, and wait for what its log has.
func (m *readersMachine) envoySays(edit, want string) {
	m.types("kill $!; wait $! || true\nsed '" + edit + "' sidecar.yaml > changed.yaml\n" +
		"envoy -c changed.yaml --component-log-level config:debug")
	m.types("again 'grep -E \"closed: " + want + "\" $(ls -t $L/program*.log | head -1)'")
}

// TestU62AProxyThatDoesNotConnectIsMendedAsInTheGuide follows what the pages say about an Envoy
// with certificates of a CA of its own: each status that its log has, until it connects. Then its
// cluster is rebuilt, and confirmed.
func TestU62AProxyThatDoesNotConnectIsMendedAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.AddLocal("10.0.0.6")
	kube := testbed.StartKube(t, testbed.KubeOptions{Namespace: m.Namespace, Address: netip.MustParseAddr("10.0.0.6")})
	write(t, filepath.Join(m.dir, "work", "c1.kubeconfig"), kube.Kubeconfig())
	m.installs(t)
	m.types("isthmus cluster attach c1 --kubeconfig c1.kubeconfig --network n1")
	m.reads(t, "identity.md", "### Certificates from a CA of your own", "Give the CA to the hub:")
	m.types(`sudo install -m 0644 hub-ca.crt proxy.crt proxy.key /etc/isthmus/
sed 's/hub.isthmus.example/localhost/' deploy/envoy/sidecar.yaml > sidecar.yaml`)
	m.reads(t, "troubleshooting.md", "## A proxy does not connect", "## A proxy gets no certificate")
	m.types("again 'grep -E \"stream to hub closed: 14, .*TLS_error:.*TLSV1_ALERT_UNKNOWN_CA\" $L/program*.log'")
	m.reads(t, "identity.md", "Give the CA to the hub:", "## Who may be which node")
	m.types("again 'isthmus get proxies | grep web-1'")
	m.envoySays("s/hub-ca.crt/proxy.crt/", "14, .*CERTIFICATE_VERIFY_FAILED")
	m.envoySays("s/port_value: 15010/port_value: 15011/", "14, .*Connection_refused")
	m.envoySays("/tls_certificates:/,+2d", "16, ")
	m.envoySays("s/CLUSTER_ID: c1/CLUSTER_ID: c2/", "7, ")
	m.envoySays("s/id: sidecar~.*/id: web-1/", "3, ")
	m.waits(t, "rebuilding", kube.Replace)
	m.types("again 'isthmus describe cluster c1 | grep HELD'\nagain 'isthmus status | grep HELD'")
	m.reads(t, "clusters.md", "## Confirm a cluster that you rebuilt", "## Give a cluster an alias")
	m.types("isthmus describe cluster c1 | grep READY\nisthmus cluster confirm c1 2>&1 | grep NOTHING_HELD")
	m.waits(t, "outage", kube.Stop)
	m.types("again 'isthmus status | grep \"c1 is STALE: .*cannot be reached\"'")
	m.reads(t, "troubleshooting.md", "## A cluster is STALE", "## A cluster is HELD")
	m.waits(t, "return", kube.Restart)
	m.types("isthmus describe cluster c1 | grep READY")
	m.managesIdentities(t)
	m.do(t, true)
}

// managesIdentities has the reader deny the account of the sidecar, allow it again, have the hub sign
// its own serving certificate, and rotate the root.
func (m *readersMachine) managesIdentities(t *testing.T) {
	t.Helper()
	m.types("sudo sed -i 's|^identity:|&\\n  denyFile: /etc/isthmus/denied|' /etc/isthmus/isthmus.yaml")
	m.reads(t, "identity.md", "## Deny list", "Later, deny the account `web`:")
	m.types("sudo systemctl restart isthmus\nagain 'isthmus get proxies'\nkill $!; wait $! || true\nenvoy -c sidecar.yaml --component-log-level config:debug")
	m.types("again 'isthmus get proxies | grep web-1'")
	m.reads(t, "identity.md", "Later, deny the account `web`:", "## How a proxy gets its certificate")
	m.types("again '! isthmus get proxies | grep web-1'")
	m.types("again 'grep -E \"closed: 7, .*deny\" $(ls -t $L/program*.log | head -1)'")
	m.types("sudo install -m 0644 /dev/null /etc/isthmus/none\nsudo mv /etc/isthmus/none /etc/isthmus/denied\nagain 'isthmus get proxies | grep web-1'")
	m.reads(t, "identity.md", "## Rotation", "## Keys at rest")
	m.types("isthmus ca show | grep WAITING\nisthmus ca rotate 2>&1 | grep SIGNER_ROTATING")
	m.types(`echo 'tls: {names: [localhost], clientCA: /etc/isthmus/clients.crt}' | sudo tee -a /etc/isthmus/isthmus.yaml
sudo sed -i -E 's/ --tls-(cert|key|client-ca) [^ ]+//g' /etc/systemd/system/isthmus.service
sudo systemctl daemon-reload
sudo systemctl restart isthmus
again 'ISTHMUS_TLS_CA=/var/lib/isthmus/root-cert.pem isthmus status'`)
}
