package docs

import "testing"

const betweenHubs = "configuration-sources.md"

// TestU75AHubReadsAnotherAsInTheGuide has a hub read the configuration of another by the page about sources, with a certificate of the
// reader's own CA. Then both read each other, and nothing comes back (U81). What was read stays when the other hub is gone.
func TestU75AHubReadsAnotherAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.installs(t)
	m.types("for side in east west; do sudo install -m 0644 hub-ca.crt /etc/isthmus/$side-ca.crt; done") // both have the same certificate
	m.reads(t, "identity.md", "### Certificates from a CA of your own", "Let the hub trust it for workloads of the cluster `c1`. If the hub runs as in [install](install.md), save")
	m.reads(t, betweenHubs, "### Another hub as a client", "2. Let `east` trust that CA, and let `west` read. The bundle needs no `clusters`, as `west` is not a proxy:")
	m.withOwn("ns/shop/sa/web", "ns/istio-system/sa/west")
	m.writes(t, "clients.yaml", betweenHubs, "yaml", "sa/west]")
	m.types("(echo 'clusters: []'; cat clients.yaml) | sudo tee /etc/isthmus/isthmus.yaml\nsudo systemctl restart isthmus")
	m.appliesEntry("reviews")
	m.writes(t, "west.yaml", betweenHubs, "yaml", "name: east")
	m.startsWest()
	const there = "isthmus get serviceentries reviews -n shop -o wide | grep mcp/east"
	m.reads(t, betweenHubs, "3. In the config file of `west`, name `east` as a [server](#read-configuration-from-another-control-plane), with the CA",
		"To have both read each other, do the same in the other direction, with a certificate of the same CA for the account `east`. Each")
	m.types(there + "\ngrep 'a control plane reads the configuration' /var/lib/hub.log | grep ns/istio-system/sa/west")
	m.readsBothWays(t)
	m.types(there + "\nisthmus get services -A | grep reviews.shop.example\nsudo systemctl stop isthmus")
	m.types("isthmus status | grep 'MCP east.*UNREACHABLE'\n" + there)
	m.withOwn("east.example", "localhost", "west.example:15010", "localhost:9010")
	m.do(t, true)
}

// appliesEntry has the reader apply a ServiceEntry to the hub that ISTHMUS_SERVER names.
func (m *readersMachine) appliesEntry(name string) {
	m.types("cat > " + name + `.yaml <<'END'
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ` + name + `, namespace: shop}
spec:
  hosts: [` + name + `.shop.example]
  ports: [{number: 9080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.9}]
END
again 'isthmus apply -f ` + name + ".yaml'")
}

// startsWest has the reader start the hub west beside the service, and ask it from now on.
func (m *readersMachine) startsWest() {
	m.types("isthmus serve --config west.yaml --data-dir west --graphql-addr 127.0.0.1:9080 --xds-addr 127.0.0.1:9010 --health-addr 127.0.0.1:9081" +
		" --tls-cert hub.crt --tls-key hub.key --tls-client-ca clients.crt")
	m.types("export ISTHMUS_SERVER=https://localhost:9080\nisthmus status")
}

// readsBothWays has the reader let east read west, too. Each hub then has the object of the other once, and its own ones from its store.
func (m *readersMachine) readsBothWays(t *testing.T) {
	t.Helper()
	before := len(m.steps)
	m.reads(t, "identity.md", "`shop`:", "Give the CA to the hub:")
	m.reads(t, betweenHubs, "### Another hub as a client", "2. Let `east` trust that CA, and let `west` read. The bundle needs no `clusters`, as `west` is not a proxy:")
	(&readersMachine{steps: m.steps[before:]}).withOwn("ns/shop/sa/web", "ns/istio-system/sa/east", "/etc/isthmus/west.", "/etc/isthmus/east.")
	m.writes(t, "both.yaml", betweenHubs, "yaml", "name: west")
	m.types(`(echo 'clusters: []'; cat both.yaml) | sudo tee /etc/isthmus/isthmus.yaml
sed 's/west/@/g; s/east/west/g; s/@/east/g; s/localhost:9010/localhost:15010/' both.yaml > west.yaml
sudo systemctl restart isthmus`)
	m.startsWest()
	m.appliesEntry("ratings")
	const east = "export ISTHMUS_SERVER=https://localhost:8080\n"
	for hub, own := range map[string]string{"": "ratings", east: "reviews"} { // each has both, and its own from its store
		other := map[string]string{"ratings": "reviews", "reviews": "ratings"}[own]
		m.types(hub + "again 'isthmus get serviceentries " + other + " -n shop -o wide | grep mcp/'\n" +
			"isthmus get serviceentries " + own + " -n shop -o wide > own\n" +
			"[ $(isthmus get serviceentries -A | grep -c shop) = 2 ]\nif grep mcp/ own; then exit 1; fi\nexport ISTHMUS_SERVER=https://localhost:9080")
	}
}
