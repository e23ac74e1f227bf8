package xds

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// agentSDS gives a proxy its identity as Istio's agent does, over a socket.
type agentSDS struct {
	secretv3.UnimplementedSecretDiscoveryServiceServer
	secrets map[string]transport.KeyMaterial
}

// StreamSecrets answers each first request of a stream.
func (a *agentSDS) StreamSecrets(g secretv3.SecretDiscoveryService_StreamSecretsServer) error {
	for {
		r, err := g.Recv()
		if err != nil {
			return err
		}
		if r.GetResponseNonce() != "" {
			continue
		}
		answer := &discoveryv3.DiscoveryResponse{TypeUrl: r.GetTypeUrl(), VersionInfo: "1", Nonce: "1"}
		for _, name := range r.GetResourceNames() {
			packed, err := anypb.New(transport.NewSecret(name, a.secrets[name]))
			if err != nil {
				return err
			}
			answer.Resources = append(answer.Resources, packed)
		}
		if err := g.Send(answer); err != nil {
			return err
		}
	}
}

// startAgent serves the identity of the workload at a socket.
func startAgent(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	socket = filepath.Join(dir, "sds")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(socket, 0o777)
	authority := testbed.NewAuthority(t, "agent")
	chain, private := authority.Issue(testbed.Subject{Hosts: []string{meshWorkload}})
	g := grpc.NewServer()
	secretv3.RegisterSecretDiscoveryServiceServer(g, &agentSDS{secrets: map[string]transport.KeyMaterial{
		transport.OwnCertificate: {Chain: chain, Key: private}, transport.OwnRoots: {Authorities: authority.PEM},
	}})
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-served })
	return socket
}

// istioTags are tags of statistics as the bootstrap of Istio's agent has them.
const istioTags = `stats_config:
  use_all_default_tags: false
  stats_tags:
  - {tag_name: cluster_name, regex: "^cluster(\\.(.+);)"}
  - {tag_name: http_conn_manager_prefix, regex: "^http\\.(((?:[_.[:digit:]\\w]*|[_\\[\\]aAbBcCdDeEfF[:digit:]\\w\\:]*));\\.)"}
`

// startAgentProxy is an Envoy as Istio's agent starts it.
func startAgentProxy(t *testing.T) *real {
	t.Helper()
	sds := startAgent(t)
	return startMeshProxy(t, newFakeSecrets(), "NODE", node("web-1").Id, "API", "DELTA_GRPC",
		"INTERCEPTION_MODE: REDIRECT", "INTERCEPTION_MODE: REDIRECT, WORKLOAD_IDENTITY_SOCKET_FILE: socket",
		"static_resources:\n", istioTags+"static_resources:\n",
		"  - name: hub\n", `  - name: sds-grpc
    type: STATIC
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: sds-grpc, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: `+sds+`}}}}]}]}
  - name: hub
`)
}

// TestR34EnvoyGetsItsIdentityFromItsAgent: an Envoy as Istio's agent starts it has its
// identity from the agent, and asks the hub for none.
func TestR34EnvoyGetsItsIdentityFromItsAgent(t *testing.T) {
	r := startAgentProxy(t)
	r.await("the clusters", r.hasClusters(cluster("named"), cluster("web")))
	r.await("the secrets", func() error {
		names, err := r.secretsOf()
		if err == nil && !slices.Equal(names, []string{transport.OwnRoots, transport.OwnCertificate}) {
			return fmt.Errorf("the secrets are %q", names)
		}
		return err
	})
	r.await("everything to be accepted", r.inSync)
	if at := r.first(Nacked, envoy.ClusterType); at >= 0 {
		t.Error("the Envoy refused clusters")
	}
	if at := r.first(Sent, envoy.SecretType); at >= 0 {
		t.Error("the hub was asked for secrets")
	}
}

// TestU49StatisticsHaveTheNamesOfClustersAsTags: an Envoy with the bootstrap of Istio's agent counts by names of clusters
// and listeners, and not by metrics whose names have parts of hosts.
func TestU49StatisticsHaveTheNamesOfClustersAsTags(t *testing.T) {
	r := startAgentProxy(t)
	r.await("the clusters", r.hasClusters(cluster("named"), cluster("web")))
	r.await("the statistics", func() error {
		body, err := r.envoy.Admin("/stats/prometheus")
		if err != nil {
			return err
		}
		page := string(body)
		for _, want := range []string{
			`envoy_cluster_membership_total{cluster_name="` + cluster("web") + `"}`,
			`envoy_cluster_membership_total{cluster_name="PassthroughCluster"}`,
			`envoy_http_downstream_rq_total{http_conn_manager_prefix="`,
		} {
			if !strings.Contains(page, want) {
				return fmt.Errorf("there is no %s", want)
			}
		}
		for line := range strings.Lines(page) {
			name, _, _ := strings.Cut(line, "{")
			if strings.HasPrefix(name, "envoy_cluster_") && strings.Contains(name, "web") ||
				strings.HasPrefix(name, "envoy_http_") && strings.Contains(name, "bound_") {
				return fmt.Errorf("the name of a metric has that of a host: %s", name)
			}
		}
		return nil
	})
}
