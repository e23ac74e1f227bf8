package docs

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3" // the bootstrap holds these
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
)

// Names in the sidecar's configuration.
const (
	sidecarFile  = "../deploy/envoy/sidecar.yaml"
	readerFile   = "../deploy/kubernetes/reader.yaml"
	hubHost      = "hub.isthmus.example"
	sidecarFiles = "/etc/isthmus/"
)

// readSidecar reads the file as Envoy's schema does: unknown fields are errors.
func readSidecar(t *testing.T) *bootstrapv3.Bootstrap {
	t.Helper()
	data, err := os.ReadFile(sidecarFile)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		t.Fatal(err)
	}
	var b bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(asJSON, &b); err != nil {
		t.Fatal(err)
	}
	if err := b.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// secureSidecar is the file with certificates in a folder and the hub's address
// replaced by that of this machine; nothing else differs.
func secureSidecar(t *testing.T, ca *testbed.Authority) []byte {
	t.Helper()
	data, err := os.ReadFile(sidecarFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	cert, key := ca.Issue(testbed.Subject{Name: "web-1", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}})
	for name, content := range map[string][]byte{"proxy.crt": cert, "proxy.key": key, "hub-ca.crt": ca.PEM} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), sidecarFiles, dir+"/")
	return []byte(strings.Replace(text, "address: "+hubHost, "address: 127.0.0.1", 1))
}

func TestEnvoyAcceptsTheSidecar(t *testing.T) {
	if err := testbed.ValidateEnvoy(t, secureSidecar(t, testbed.NewAuthority(t, "ca"))); err != nil {
		t.Error(err)
	}
	ads := readSidecar(t).GetDynamicResources().GetAdsConfig()
	if ads.GetApiType().String() != "DELTA_GRPC" || !ads.GetSetNodeOnFirstMessageOnly() {
		t.Errorf("ADS is %v", ads)
	}
}

// meshRoots has the hub trust the proxies that the authority signs.
func meshRoots(t *testing.T, dir string, mesh *testbed.Authority) string {
	t.Helper()
	return "identity: {bundles: [{trustDomain: cluster.local, file: " + write(t, filepath.Join(dir, "mesh.crt"),
		mesh.PEM) + ", clusters: [c1]}]}\n"
}

// TestSidecarConnectsWithMutualTLS runs hub and Envoy as the guide says and
// wants every field of the node to be understood and every type accepted.
func TestSidecarConnectsWithMutualTLS(t *testing.T) {
	ca, operators, dir := testbed.NewAuthority(t, "ca"), testbed.NewAuthority(t, "operators"), shortDir(t)
	cert, key := ca.Issue(testbed.Subject{Name: "hub", Hosts: []string{hubHost}})
	at := netip.MustParseAddr("127.0.0.1")
	graphql := netip.AddrPortFrom(at, uint16(testbed.FreePort(t, nil, at)))
	xds := netip.AddrPortFrom(at, uint16(testbed.FreePort(t, nil, at)))
	config := write(t, filepath.Join(dir, "isthmus.yaml"), []byte("clusters: [{id: c1, provider: Mock, network: n1}]\n"+meshRoots(t, dir, ca)))
	h := &hub{url: "https://" + hubHost + ":" + fmt.Sprint(graphql.Port())}
	h.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: clientOf(operators, ca), DialContext: to(graphql.String()),
		DisableKeepAlives: true,
	}}
	h.start(t, dir, []string{
		"--config", config, "--graphql-addr", graphql.String(), "--xds-addr", xds.String(),
		"--tls-cert", write(t, filepath.Join(dir, "hub.crt"), cert), "--tls-key", write(t, filepath.Join(dir, "hub.key"), key),
		"--tls-client-ca", write(t, filepath.Join(dir, "clients.crt"), operators.PEM),
	})
	pod := testbed.NewNamespace(t, "web-1")
	testbed.StartProxyWith(t, testbed.ProxyOptions{Namespace: pod, Address: at, Port: 15010, Target: xds.String()})
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "sidecar", Namespace: pod, Config: secureSidecar(t, ca)}).WaitReady(patience)

	var a struct {
		Data struct {
			Proxies struct {
				Nodes []struct {
					NodeID, Type, ClusterID, NetworkID, Namespace, Delivery string
					Addresses                                               []string
					Labels                                                  []struct{ Key, Value string }
					Locality                                                struct{ Region, Zone string }
					Sync                                                    []struct{ TypeURL, State, LastError string }
				}
			}
		}
	}
	h.await(t, "the sidecar to have everything", `{ proxies { nodes { nodeID type clusterID networkID namespace delivery addresses
		labels { key value } locality { region zone } sync { typeUrl state lastError } } } }`, &a, func() error {
		if n := len(a.Data.Proxies.Nodes); n != 1 {
			return fmt.Errorf("%d proxies", n)
		}
		for _, s := range a.Data.Proxies.Nodes[0].Sync {
			if s.State != "SYNCED" {
				return fmt.Errorf("%+v", a.Data.Proxies.Nodes[0].Sync)
			}
		}
		return nil
	})
	p, node := a.Data.Proxies.Nodes[0], readSidecar(t).GetNode()
	fields := node.GetMetadata().AsMap()
	got := map[string]any{
		"CLUSTER_ID": p.ClusterID, "NAMESPACE": p.Namespace, "NETWORK": p.NetworkID, "INSTANCE_IPS": strings.Join(p.Addresses, ","),
	}
	for key, value := range got {
		if fields[key] != value {
			t.Errorf("%s is %v, the hub shows %v", key, fields[key], value)
		}
	}
	if p.NodeID != node.GetId() || p.Delivery != "DELTA" || p.Locality.Region != node.GetLocality().GetRegion() ||
		p.Locality.Zone != node.GetLocality().GetZone() ||
		len(p.Labels) != 1 || fields["LABELS"].(map[string]any)[p.Labels[0].Key] != p.Labels[0].Value {
		t.Errorf("the hub shows %+v", p)
	}
}

func clientOf(operators, ca *testbed.Authority) *tls.Config {
	config := operators.TLS(testbed.Subject{Name: "operator"})
	config.RootCAs, config.ServerName = ca.Pool(), hubHost
	return config
}

// TestReaderGrantsWhatIsRead: the role has what the registry lists and watches,
// and nothing more.
func TestReaderGrantsWhatIsRead(t *testing.T) {
	manifest, err := os.ReadFile(readerFile)
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for doc := range strings.SplitSeq(string(manifest), "\n---") {
		var role struct {
			Kind  string
			Rules []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
		}
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if !slices.Equal(rule.Verbs, []string{"list", "watch"}) {
				t.Errorf("the verbs are %v", rule.Verbs)
			}
			for _, resource := range rule.Resources {
				granted = append(granted, strings.TrimSuffix(resource+"."+rule.APIGroups[0], "."))
			}
		}
	}
	slices.Sort(granted)
	if want := slices.Compact(resourcesRead(t)); !slices.Equal(granted, want) { // some Namespaces are kinds of their own to the hub
		t.Errorf("the role grants %v, the hub reads %v", granted, want)
	}
}

// TestARebuiltClusterIsConfirmedAsInTheGuide: another cluster at the same address
// is held until its file was taken away and put back.
func TestARebuiltClusterIsConfirmedAsInTheGuide(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: default}\nspec: {ports: [{name: http, port: 80}]}\n"
	kube := testbed.StartKube(t, testbed.KubeOptions{})
	kube.Apply(fmt.Sprintf(service, "old"))
	dir := shortDir(t)
	file := filepath.Join(dir, "c1.yaml")
	write(t, file, kube.Kubeconfig())
	h := startHub(t, "--kubeconfig-dir", dir)
	var a struct {
		Data struct {
			Cluster *struct {
				Status struct{ Phase, Message string }
			}
			Services struct{ Nodes []struct{ Hostname string } }
		}
	}
	await := func(phase string, has bool) {
		t.Helper()
		h.await(t, "the cluster to be "+phase, `{ cluster(clusterID: "c1") { status { phase message } } services { nodes { hostname } } }`,
			&a, func() error {
				old := strings.Contains(fmt.Sprint(a.Data.Services.Nodes), "{old.default.")
				if a.Data.Cluster == nil && phase != "" || a.Data.Cluster != nil && a.Data.Cluster.Status.Phase != phase || old != has {
					return fmt.Errorf("%+v, the old service: %t", a.Data.Cluster, old)
				}
				return nil
			})
	}
	await("READY", true)
	kube.Replace()
	await("HELD", true)
	if !strings.HasPrefix(a.Data.Cluster.Status.Message, "another cluster answers at this address") {
		t.Errorf("the message is %q", a.Data.Cluster.Status.Message)
	}
	if err := os.Rename(file, file+".bak"); err != nil {
		t.Fatal(err)
	}
	await("", false)
	a.Data.Cluster = nil
	if err := os.Rename(file+".bak", file); err != nil {
		t.Fatal(err)
	}
	await("READY", false)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
