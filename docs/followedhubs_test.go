package docs

import "testing"

// TestU75AHubReadsAnotherAsInTheGuide has a hub read the configuration of another by the page about sources, with a certificate of the
// reader's own CA. What was read stays when the other hub is gone.
func TestU75AHubReadsAnotherAsInTheGuide(t *testing.T) {
	t.Parallel()
	const page = "configuration-sources.md"
	m := newMachine(t)
	m.installs(t)
	m.reads(t, "identity.md", "### Certificates from a CA of your own", "Let the hub trust it for workloads of the cluster `c1`. If the hub runs as in [install](install.md), save")
	m.writes(t, "clients.yaml", page, "yaml", "sa/west]")
	m.types("(echo 'clusters: []'; cat clients.yaml) | sudo tee /etc/isthmus/isthmus.yaml\nsudo systemctl restart isthmus")
	m.types(`cat > reviews.yaml <<'END'
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: shop}
spec:
  hosts: [reviews.shop.example]
  ports: [{number: 9080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.9}]
END
again 'isthmus apply -f reviews.yaml'`)
	m.writes(t, "west.yaml", page, "yaml", "name: east")
	m.withOwn("ns/shop/sa/web", "ns/istio-system/sa/west", "proxy.", "west.", "east.example", "localhost", "/etc/isthmus/east-ca.crt", "hub-ca.crt",
		"/etc/isthmus/west.", "west.")
	m.types("isthmus serve --dev --config west.yaml --data-dir west --graphql-addr 127.0.0.1:9080 --xds-addr 127.0.0.1:9010 --health-addr 127.0.0.1:9081")
	m.types("unset ISTHMUS_TLS_CA ISTHMUS_TLS_CERT ISTHMUS_TLS_KEY\nexport ISTHMUS_SERVER=http://127.0.0.1:9080\nisthmus status")
	m.reads(t, page, "3. In the config file of `west`, name `east` as a [server](#read-configuration-from-another-control-plane), with the CA",
		"To have both read each other, do the same in the other direction. If both start at the same time, each is ready after 10 s, since each")
	const there = "isthmus get serviceentries reviews -n shop -o wide | grep mcp/east"
	m.types(there + "\ngrep 'a control plane reads the configuration' /var/lib/hub.log | grep ns/istio-system/sa/west")
	m.types("isthmus get services -A | grep reviews.shop.example\nsudo systemctl stop isthmus\nisthmus status | grep 'MCP east.*UNREACHABLE'\n" + there)
	m.do(t, true)
}
