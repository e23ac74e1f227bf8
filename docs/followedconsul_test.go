package docs

import (
	"strings"
	"testing"
)

// writes has the reader write a file with the block of a page that has the text.
func (m *readersMachine) writes(t *testing.T, file, page, lang, text string) {
	t.Helper()
	for _, block := range blocksOf(read(t, page), lang) {
		if strings.Contains(block, text) {
			m.types("cat > " + file + " <<'END_OF_FILE'\n" + block + "END_OF_FILE")
			return
		}
	}
	t.Fatalf("%s has no block of %s with %q", page, lang, text)
}

// typesThose has the reader type the commands of a section about clusters that have a text, of those for several kinds of clusters.
func (m *readersMachine) typesThose(t *testing.T, heading, with string) {
	t.Helper()
	before := len(m.steps)
	for line := range strings.Lines(blocksOf(section(t, read(t, "clusters.md"), heading), "sh")[0]) {
		if strings.Contains(line, with) {
			m.types(strings.TrimSpace(line))
		}
	}
	if len(m.steps) == before {
		t.Fatalf("%q has no command with %q", heading, with)
	}
}

// withOwn has the reader put the names and addresses of the installation instead of the pages'.
func (m *readersMachine) withOwn(pairs ...string) {
	own := strings.NewReplacer(pairs...)
	for i := range m.steps {
		m.steps[i].command = own.Replace(m.steps[i].command)
	}
}

// TestU63ADatacenterIsServedAsInTheGuide follows the pages about a Consul datacenter that has ACLs
// and TLS: the token of the hub, attaching and rotating, and proxies that prove themselves by a token
// and by a certificate of Connect.
func TestU63ADatacenterIsServedAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	consul := m.hasConsul(t, "10.0.0.7")
	m.installs(t)
	m.reads(t, gettingStarted, "## 3. Attach a Consul datacenter",
		"Add the datacenter to the config file. Save both clusters as `isthmus.yaml`:")
	m.typesThose(t, "## Attach a cluster", "--consul-address")
	m.types("again 'isthmus describe cluster dc1 | grep READY'\nagain 'isthmus get services -A | grep web.service.consul'")
	m.types("consul acl token create -policy-name isthmus-reader -format json | jq -r .SecretID > new.token")
	m.typesThose(t, "## Rotate credentials", "--consul-address")
	m.types("isthmus describe cluster dc1 | grep READY")
	m.types("isthmus cluster detach dc1")
	m.proxiesOfConsul(t)
	m.withOwn("consul.example:8501", consul.Address)
	m.do(t, true)
}

// proxiesOfConsul has the reader serve proxies of the datacenter that the config file has.
func (m *readersMachine) proxiesOfConsul(t *testing.T) {
	t.Helper()
	m.types("sudo install -m 0640 -o root -g isthmus consul-ca.crt dc1.token /etc/isthmus/")
	m.writes(t, "/etc/isthmus/isthmus.yaml", "consul.md", "yaml", "workloads:")
	m.types("sudo systemctl restart isthmus\nagain 'isthmus describe cluster dc1 | grep READY'")
	m.writes(t, "grpc.yaml", "consul.md", "text", "x-consul-token")
	m.writes(t, "node.yaml", "consul.md", "text", "web-sidecar-proxy")
	m.types(`TOKEN=$(consul acl token create -service-identity web -format json | jq -r .SecretID)
sudo install -m 0644 hub-ca.crt /etc/isthmus/
sed -e '/^node:/,/^admin:/{/^admin:/!d}' -e '/^    grpc_services:/,+1d' -e '/^    set_node_on/r grpc.yaml' \
  -e 's/hub.isthmus.example/localhost/' \
  deploy/envoy/sidecar.yaml | cat node.yaml - | sed "s/TOKEN/$TOKEN/" > leaf.yaml
sed '/tls_certificates:/,+2d' leaf.yaml > sidecar.yaml`)
	m.types("envoy -c sidecar.yaml --component-log-level config:debug")
	m.types("again 'isthmus get proxies | grep web-sidecar-proxy'\nkill $!; wait $! || true")
	m.types(`curl -s --cacert consul-ca.crt -H "X-Consul-Token: $CONSUL_HTTP_TOKEN" $CONSUL_HTTP_ADDR/v1/agent/connect/ca/leaf/web > leaf.json
jq -r .CertPEM leaf.json > /etc/isthmus/proxy.crt && jq -r .PrivateKeyPEM leaf.json > /etc/isthmus/proxy.key
sed -i -e '/initial_metadata/d' leaf.yaml`)
	m.types("envoy -c leaf.yaml --component-log-level config:debug")
	m.types("again 'isthmus get proxies | grep web-sidecar-proxy.*SYNCED'")
}
