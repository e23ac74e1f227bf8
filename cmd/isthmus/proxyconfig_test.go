package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// causesOf are the causes of the clusters that a proxy was sent, by name of the cluster.
func causesOf(t *testing.T, proxy string) map[string][]string {
	t.Helper()
	var shown struct {
		Items []struct {
			Name   string
			Causes []struct{ Kind, Namespace, Name string }
		}
	}
	if err := json.Unmarshal([]byte(mustRun(t, "proxy", "config", proxy, "clusters", "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, one := range shown.Items {
		found[one.Name] = []string{}
		for _, c := range one.Causes {
			found[one.Name] = append(found[one.Name], c.Kind+" "+c.Namespace+"/"+c.Name)
		}
	}
	return found
}

// proxy config names the objects that each resource was built from, and no others: a rule
// for its host, and the entry that declares it.
func TestR44ProxyConfigNamesCauses(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	dir := t.TempDir()
	rule := strings.Replace(fmt.Sprintf(manifest1, "rule"), "host: web",
		"host: ext.example.com, trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}", 1)
	other := strings.Replace(fmt.Sprintf(manifest1, "other"), "host: web",
		"host: other.example.com, trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}", 1)
	mustRun(t, "apply", "-f", write(t, filepath.Join(dir, "all.yaml"), externalShop+"---\n"+rule+"---\n"+other))
	s.do("web-1 receives")
	s.do("web-1 accepts")
	found := causesOf(t, "web-1.shop")
	want := []string{"DestinationRule shop/rule", "ServiceEntry shop/ext"}
	if got := found["outbound|80||ext.example.com"]; !slices.Equal(got, want) {
		t.Errorf("the cluster of the entry is made of %q, want %q", got, want)
	}
	for name, causes := range found {
		if strings.Contains(name, "hello.") && len(causes) > 0 {
			t.Errorf("%s is made of %q, though no object names it", name, causes)
		}
	}
	mustRun(t, "delete", "dr/rule", "-n", "shop")
	s.do("web-1 receives")
	s.do("web-1 accepts")
	if got := causesOf(t, "web-1.shop")["outbound|80||ext.example.com"]; !slices.Equal(got, want[1:]) {
		t.Errorf("after the rule was deleted, the cluster is made of %q", got)
	}
}

// Proxies of two clusters with the same node ID are told apart: without a cluster the
// error says which names there are, and with one it is that cluster's proxy.
func TestR36ProxiesOfTwoClustersAreToldApart(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	for _, cluster := range []string{"c1", "c2"} {
		metadata, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": cluster})
		must(t, err)
		s.proxies[cluster] = s.connectNode(&corev3.Node{Id: nodeOf("web-1"), Metadata: metadata})
		s.receive(cluster)
		s.must(s.proxies[cluster].client.Ack(s.proxies[cluster].last))
	}
	for _, name := range []string{"web-1.shop", nodeOf("web-1")} {
		for _, line := range []string{"proxy config", "proxy status", "describe proxy", "get proxy"} {
			code, _, errText := command(t, append(strings.Fields(line), name)...)
			if code == cmdutil.ExitDone || !strings.Contains(errText, "use one of c1/"+name+", c2/"+name) {
				t.Errorf("%s %s: exit %d: %s", line, name, code, errText)
			}
		}
		for _, cluster := range []string{"c1", "c2"} {
			var shown struct{ ClusterID string }
			if err := json.Unmarshal([]byte(mustRun(t, "proxy", "config", cluster+"/"+name, "-o", "json")), &shown); err != nil ||
				shown.ClusterID != cluster {
				t.Errorf("proxy config %s/%s is about cluster %q: %v", cluster, name, shown.ClusterID, err)
			}
			if out := mustRun(t, "proxy", "status", cluster+"/"+name); !strings.Contains(out, cluster) {
				t.Errorf("proxy status %s/%s: %s", cluster, name, out)
			}
		}
	}
}
