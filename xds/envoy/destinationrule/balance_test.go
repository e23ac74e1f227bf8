package destinationrule

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"
)

// policyFrom reads a policy as manifests have it, in JSON.
func policyFrom(t *testing.T, text string) *networking.TrafficPolicy {
	t.Helper()
	p := &networking.TrafficPolicy{}
	if err := protojson.Unmarshal([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestK22EndpointsWarmUp(t *testing.T) {
	for name, c := range map[string]struct{ balancer, window string }{
		"round robin":          {`{"warmup": {"duration": "7s"}}`, "7s"},
		"the old form":         {`{"warmupDurationSecs": "8s"}`, "8s"},
		"least request":        {`{"simple": "LEAST_REQUEST", "warmup": {"duration": "9s"}}`, "9s"},
		"no duration":          {`{"warmup": {"minimumPercent": 5}}`, ""},
		"none":                 {`{}`, ""},
		"random is not warmed": {`{"simple": "RANDOM", "warmup": {"duration": "9s"}}`, "ignored"},
		"nor are hashes":       {`{"consistentHash": {"useSourceIp": true}, "warmup": {"duration": "9s"}}`, "ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv3.Cluster{}
			ignored := SetBalancing(cluster, policyFrom(t, `{"loadBalancer": `+c.balancer+`}`), false)
			got := ""
			for _, slow := range []*clusterv3.Cluster_SlowStartConfig{
				cluster.GetRoundRobinLbConfig().GetSlowStartConfig(),
				cluster.GetLeastRequestLbConfig().GetSlowStartConfig(),
			} {
				if slow != nil {
					got = slow.GetSlowStartWindow().AsDuration().String()
				}
			}
			if len(ignored) == 1 && ignored[0].Field == "loadBalancer.warmup" {
				got = "ignored"
			}
			if got != c.window {
				t.Errorf("endpoints warm up for %q, want %q; ignored are %v", got, c.window, ignored)
			}
		})
	}
}

// A tunnel that cannot be had never lets connections go past it.
func TestK22TunnelsThatCannotBeHadCloseConnections(t *testing.T) {
	for name, c := range map[string]struct{ tunnel, want string }{
		"a name":             {`{"targetHost": "a.example.com", "targetPort": 443}`, "a.example.com:443"},
		"an address":         {`{"protocol": "CONNECT", "targetHost": "192.0.2.1", "targetPort": 80}`, "192.0.2.1:80"},
		"IPv6":               {`{"protocol": "POST", "targetHost": "fd00::1", "targetPort": 80}`, "[fd00::1]:80 POST"},
		"no port":            {`{"targetHost": "a.example.com"}`, "BlackHoleCluster"},
		"no such port":       {`{"targetHost": "a.example.com", "targetPort": 65536}`, "BlackHoleCluster"},
		"no host":            {`{"targetPort": 80}`, "BlackHoleCluster"},
		"a command of Envoy": {`{"targetHost": "%REQ(x)%", "targetPort": 80}`, "BlackHoleCluster"},
		"another protocol":   {`{"protocol": "GET", "targetHost": "a.example.com", "targetPort": 443}`, "BlackHoleCluster"},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := &tcpproxyv3.TcpProxy{}
			ApplyTCP(proxy, policyFrom(t, `{"tunnel": `+c.tunnel+`}`))
			got := proxy.GetTunnelingConfig().GetHostname() + proxy.GetCluster()
			if proxy.GetTunnelingConfig().GetUsePost() {
				got += " POST"
			}
			if got != c.want {
				t.Errorf("connections go to %q, want %q", got, c.want)
			}
		})
	}
}
