package testbed

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// sidecarConfig catches the traffic of a pod; WEB is the address of the service.
const sidecarConfig = `
static_resources:
  listeners:
  - name: virtualOutbound
    address: {socket_address: {address: 0.0.0.0, port_value: 15001}}
    use_original_dst: true
    filter_chains:
    - filter_chain_match: {destination_port: 15001}
      filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: hole, cluster: BlackHoleCluster}}]
    - filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: pass, cluster: PassthroughCluster}}]
  - name: 10.96.0.10_80
    address: {socket_address: {address: 10.96.0.10, port_value: 80}}
    bind_to_port: false
    filter_chains:
    - filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
        stat_prefix: outbound, http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
        access_log: [{name: file, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: $DIR/access.log}}],
        route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web}}]}]}}}]
  - name: virtualInbound
    address: {socket_address: {address: 0.0.0.0, port_value: 15006}}
    listener_filters: [{name: dst, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.original_dst.v3.OriginalDst}}]
    filter_chains:
    - filter_chain_match: {destination_port: 8080}
      filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: inbound, cluster: app}}]
  clusters:
  - {name: PassthroughCluster, type: ORIGINAL_DST, lb_policy: CLUSTER_PROVIDED, connect_timeout: 2s}
  - {name: BlackHoleCluster, type: STATIC}
  - name: web
    type: STATIC
    load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: WEB, port_value: 8080}}}}]}]}
  - name: app
    type: STATIC
    load_assignment: {cluster_name: app, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}}]}]}
`

// startPod makes a pod in a network whose app is captured by a sidecar.
func startPod(t *testing.T, network *Network, name, address string) (*Namespace, *Envoy) {
	t.Helper()
	pod := NewNamespace(t, name)
	pod.Join(network, address)
	pod.Capture(ProxyUID)
	StartEcho(t, EchoOptions{Name: name, Namespace: pod, HTTP: []int{8080}})
	envoy := StartEnvoy(t, EnvoyOptions{Name: name, Namespace: pod, Config: []byte(strings.ReplaceAll(sidecarConfig, "WEB", "10.244.1.3"))})
	envoy.WaitReady(time.Minute)
	return pod, envoy
}

func TestEnvoyCapturesTheTrafficOfAPod(t *testing.T) {
	network := NewNetwork(t, "east", "10.244.1.0/24")
	client, clientProxy := startPod(t, network, "client", "10.244.1.2")
	_, serverProxy := startPod(t, network, "server", "10.244.1.3")

	answer := wantAnswer(t, client, "http://10.96.0.10/", "server")
	if remote, err := netip.ParseAddrPort(answer.Remote); err != nil || !remote.Addr().IsLoopback() {
		t.Errorf("the server's app is reached from %s, want its own sidecar", answer.Remote)
	}
	if got := clientProxy.Stat("http.outbound.downstream_rq_2xx"); got != 1 {
		t.Errorf("the client's sidecar carried %d requests to the service, want 1", got)
	}
	if got := serverProxy.Stat("tcp.inbound.downstream_cx_total"); got != 1 {
		t.Errorf("the server's sidecar took %d connections, want 1", got)
	}
	wantAnswer(t, client, "http://10.244.1.3:8080/", "server")
	if got := clientProxy.Stat("tcp.pass.downstream_cx_total"); got != 1 {
		t.Errorf("the client's sidecar passed %d connections by address, want 1", got)
	}
	WaitFor(t, time.Minute, "the access log", func() error {
		if log := clientProxy.ReadFile("access.log"); !strings.Contains(string(log), "10.244.1.3:8080") {
			return fmt.Errorf("it holds %q", log)
		}
		return nil
	})
}

func TestEnvoyRestartsAndShowsItself(t *testing.T) {
	address := netip.MustParseAddr("127.0.0.1")
	admin := netip.AddrPortFrom(address, uint16(FreePort(t, nil, address)))
	for name, options := range map[string]EnvoyOptions{"socket": {}, "address": {Admin: admin}} {
		t.Run(name, func(t *testing.T) {
			options.Config = []byte(`{"static_resources":{"clusters":[{"name":"only","type":"STATIC"}]}}`)
			options.Args = []string{"--service-node", "node-1", "--service-cluster", "test"}
			envoy := StartEnvoy(t, options)
			envoy.WaitReady(time.Minute)
			envoy.Kill()
			if body, err := envoy.Admin("/ready"); err == nil {
				t.Errorf("a killed Envoy answers %s", body)
			}
			envoy.Restart()
			for what, body := range map[string][]byte{"clusters": envoy.Clusters(), "config dump": envoy.ConfigDump()} {
				if !strings.Contains(string(body), `"only"`) {
					t.Errorf("the %s lack the cluster: %.300s", what, body)
				}
			}
			group := envoy.PID()
			envoy.Stop()
			if err := gone(group); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEnvoyValidates(t *testing.T) {
	if err := ValidateEnvoy(t, []byte(`{"static_resources":{}}`)); err != nil {
		t.Error(err)
	}
	err := ValidateEnvoy(t, []byte(`{"static_resources":{"clusters":[{"name":"bad","connect_timeout":"0s"}]}}`))
	if err == nil || !strings.Contains(err.Error(), "ConnectTimeout") {
		t.Errorf("a cluster without a timeout gives %v, want its field named", err)
	}
}
