package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// Hub is the hub's own program.
type Hub struct {
	*testbed.Process
	URL string // of GraphQL's address

	web    *http.Client
	socket string // of xDS
}

// startHub runs a hub with --dev: proxies reach it over a unix socket, whatever
// their network.
func startHub(t testing.TB, program, config string) *Hub {
	t.Helper()
	dir := shortDir(t)
	graphql, health := freeAddress(t), freeAddress(t)
	var here *testbed.Namespace
	h := &Hub{URL: "http://" + graphql, web: here.Client(nil), socket: filepath.Join(dir, "xds.sock")}
	file := filepath.Join(dir, "isthmus.yaml")
	writeFile(t, file, config)
	h.Process = testbed.StartProgram(t, testbed.ProgramOptions{
		Name: "isthmus", Path: program,
		Args: []string{
			"serve", "--dev", "--data-dir", filepath.Join(dir, "data"), "--config", file,
			"--graphql-addr", graphql, "--health-addr", health, "--xds-addr", "unix:" + h.socket,
		},
		Ready: func(ctx context.Context) error {
			if err := os.Chmod(h.socket, 0o666); err != nil { // for the users of the proxies
				return err
			}
			return h.get(ctx, "http://"+health+"/readyz")
		},
	})
	return h
}

func (h *Hub) get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := h.web.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", url, answer.StatusCode)
	}
	return nil
}

// Query asks the GraphQL API and reads the answer's data.
func (h *Hub) Query(query string, variables map[string]any, into any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	answer, err := h.web.Post(h.URL+"/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var envelope struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return err
	}
	if len(envelope.Errors) > 0 {
		return errors.New(envelope.Errors[0].Message)
	}
	return json.Unmarshal(envelope.Data, into)
}

// Apply makes manifests part of the configuration, or ends the test.
func (h *Hub) Apply(t testing.TB, manifests string) {
	t.Helper()
	var a struct {
		Apply struct{ UserErrors []struct{ Message string } }
	}
	err := h.Query(`mutation($m: [String!]!) { apply(input: {manifests: $m, message: "bridge"}) { userErrors { message } } }`,
		map[string]any{"m": []string{manifests}}, &a)
	if err != nil || len(a.Apply.UserErrors) > 0 {
		t.Fatalf("applying: %v %v", err, a.Apply.UserErrors)
	}
}

func (h *Hub) bootstrap(p *Pod, s *Site, nodeType string) []byte {
	namespace, mode, labels := "shop", "standard", "app: "+p.Name
	if nodeType == "router" {
		namespace, mode, labels = "istio-system", "sni-dnat", "istio: eastwestgateway"
	}
	return fmt.Appendf(nil, `
node:
  id: %[1]s~%[2]s~%[3]s.%[4]s~%[4]s.svc.cluster.local
  cluster: %[3]s
  metadata:
    CLUSTER_ID: %[5]s
    NETWORK: %[6]s
    NAMESPACE: %[4]s
    SERVICE_ACCOUNT: %[3]s
    INSTANCE_IPS: %[2]s
    IDENTITY_SOURCE: ads
    ROUTER_MODE: %[7]s
    LABELS: {%[9]s}
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [{envoy_grpc: {cluster_name: hub}}]
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - name: hub
    type: STATIC
    connect_timeout: 2s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: hub
      endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %[8]s}}}}]}]
`, nodeType, p.Address, p.Name, namespace, s.Cluster, s.Network, mode, h.socket, labels)
}

// shortDir is a folder whose path is short enough for a unix socket and that a
// proxy's user may enter.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "isthmus-bridge-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what stays lies in the system's folder for that
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// freeAddress is one of loopback that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	loopback := netip.MustParseAddr("127.0.0.1")
	return netip.AddrPortFrom(loopback, uint16(testbed.FreePort(t, nil, loopback))).String()
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
