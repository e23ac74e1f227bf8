package graph_test

import (
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// explainer knows one proxy, which is sent to the first endpoint of c1 directly,
// to others by a gateway or not at all.
type explainer struct{}

func (explainer) Explain(s *federation.Snapshot, _ *fleet.Value, proxy string, host federation.Hostname, port uint16) (fleet.Explained, bool) {
	if proxy != sidecarID {
		return fleet.Explained{}, false
	}
	all := fleet.Explained{Proxy: fleet.ProxyID{Cluster: "c1", NodeID: proxy}}
	all.Service, _ = s.Service(federation.ServiceKey{Hostname: host, Namespace: "shop"})
	for _, service := range s.ByHostname(host) {
		for _, i := range service.Instances(port) {
			e := federation.Explanation{Shard: i.Shard, Endpoint: i.Endpoint, Via: federation.ViaNone, Code: "UNHEALTHY", Message: "it is unhealthy"}
			switch {
			case i.Shard.Cluster == "c1":
				e.Included, e.Via = true, federation.ViaDirect
				e.Code, e.Message = "DIRECT", "it is in the proxy's own network"
			case i.Endpoint.Health == federation.Healthy:
				e.Included, e.Via = true, federation.ViaGateway
				e.Code, e.Message = "GATEWAY", "by 192.0.2.1:15443"
				e.Cause = federation.ObjectKey{Group: federation.MeshGroup, Kind: "Network", Name: "n2"}
			}
			all.Endpoints = append(all.Endpoints, e)
		}
	}
	return all, true
}

func explaining(t *testing.T) hub {
	return hubWith(t, graph.Options{Snapshots: &source{fixture(t)}, Fleet: proxies(), Explainer: explainer{}})
}

func TestContractOfExplainIsAnswered(t *testing.T) {
	data, errs := explaining(t).send(contract(t)["Explain"],
		map[string]any{"proxy": sidecarID, "hostname": strings.ToUpper(string(web.Hostname)) + ".", "port": 80})
	if len(errs) > 0 {
		t.Fatal(string(errs))
	}
	compare(t, filepath.Join("testdata", "contract", "Explain.json"), indented(t, withoutOpaque(data)))
}

func TestExplainSaysWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		proxy, host string
		port        int
		want        string
	}{
		"a proxy":   {"sidecar~10.9.9.9~x.y~y", string(web.Hostname), 80, `"NOT_FOUND"`},
		"a service": {sidecarID, "nowhere.example", 80, `"NOT_FOUND"`},
		"a port":    {sidecarID, string(web.Hostname), 65536, `"BAD_USER_INPUT"`},
	} {
		t.Run(name, func(t *testing.T) {
			data, errs := explaining(t).ask(contract(t)["Explain"], map[string]any{"proxy": c.proxy, "hostname": c.host, "port": c.port})
			if data["explain"] != nil || !strings.Contains(errs, c.want) {
				t.Errorf("the answer is %v %s, want %s", data, errs, c.want)
			}
		})
	}
}
