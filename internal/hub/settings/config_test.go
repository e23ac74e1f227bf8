package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// contractConfig is the config file of the public contract.
const contractConfig = `graphql: {addr: 127.0.0.1:8080}
xds: {addr: 127.0.0.1:15010}
tls: {cert: "", key: "", clientCA: ""}
dataDir: /var/lib/isthmus
clusterID: hub                    # the hub's own ID; External services carry it
etcd: {endpoints: [], tls: {cert: "", key: "", ca: ""}}     # none: embedded
clusters:
- id: c1
  provider: Kubernetes            # Kubernetes Consul Mock
  network: n1
  precedence: 100                 # lower wins conflicts
  kubernetes: {kubeconfig: /etc/isthmus/c1.kubeconfig, context: ""}
- id: dc1
  provider: Consul
  network: n2
  consul: {address: "https://consul.example:8501", datacenter: dc1, tokenFile: /etc/isthmus/token, tls: {ca: "", cert: "", key: ""},
           hostname: "{{.Service}}.default.svc.cluster.local", namespace: ""}
`

func TestConfigOfTheContract(t *testing.T) {
	c, err := parseConfig("x.yaml", []byte(contractConfig))
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != "/var/lib/isthmus" || c.ClusterID != "hub" || c.XDS.Addr != "127.0.0.1:15010" || len(c.Clusters) != 2 {
		t.Errorf("it reads as %+v", c)
	}
	if spec := c.Clusters[0].Spec(); spec != (federation.ClusterSpec{Provider: federation.Kubernetes, Network: "n1", Precedence: 100}) {
		t.Errorf("c1 is %+v", spec)
	}
	if c.Clusters[1].Consul.Hostname != "{{.Service}}.default.svc.cluster.local" || c.Clusters[1].Consul.TokenFile != "/etc/isthmus/token" {
		t.Errorf("dc1 is %+v", c.Clusters[1].Consul)
	}
}

func TestRefusedConfigs(t *testing.T) {
	const cluster = "clusters:\n- id: c1\n  provider: Mock\n"
	for name, c := range map[string]struct{ content, want string }{
		"unknown key":              {"xds: {addr: unix:a}\ngrahpql: {addr: unix:b}\n", "[2:1]"},
		"unknown key names itself": {"grahpql: {addr: unix:b}\n", "grahpql"},
		"unknown key of a cluster": {cluster + "  net: n1\n", "[4:3]"},
		"unknown key deep inside":  {"clusters:\n- id: c1\n  provider: Consul\n  consul: {address: x, token: s3cr3t}\n", "[4:24]"},
		"a key like it":            {"etcd:\n  qoutaBytes: 1\n", `[2:3] unknown key "etcd.qoutaBytes"; did you mean "etcd.quotaBytes"?`},
		"a section like it":        {"dataDir: a\ngrahpql: {addr: unix:b}\n", `[2:1] unknown key "grahpql"; did you mean "graphql"?`},
		"a key like it in a list": {
			cluster + "  presedence: 3\n",
			`[4:3] unknown key "clusters[0].presedence"; did you mean "clusters[0].precedence"?`,
		},
		"a key like no other": {
			"tls:\n  passphrase: s3cr3t\n",
			`unknown key "tls.passphrase"; the keys here are cert, key, clientCA, names`,
		},
		"repeated key":           {"dataDir: a\ndataDir: b\n", "[2:1]"},
		"wrong type":             {"clusters: 3\n", "[1:11]"},
		"wrong type of a number": {cluster + "  precedence: high\n", "[4:15]"},
		"fraction of a number":   {"xds: {maxConnections: 5.5}\n", "[1:23] xds.maxConnections must be a whole number"},
		"text for true": {
			"clusters:\n- kubernetes: {secrets: s3cr3t}\n",
			"[2:25] clusters[0].kubernetes.secrets must be true or false",
		},
		"no list":               {"graphql: {allowedHosts: s3cr3t}\n", "[1:25] graphql.allowedHosts must be a list"},
		"repeated key of a map": {"clusterAliases: {c2: [a], c2: [b]}\n", `[1:27] the key "clusterAliases.c2" is repeated`},
		"an alias of itself":    {"clusters: &all [*all]\n", "[1:11] clusters[0] must be a mapping"},
		"an endless text":       {"dataDir: \"s3cr3t\n", "this is not valid YAML"},
		"no YAML":               {"\t: [", "["},
		"two documents":         {"dataDir: a\n---\ndataDir: b\n", "more than one document"},
		"ID missing":            {"clusters:\n- provider: Mock\n", "clusters[0].id"},
		"ID with a slash":       {"clusters:\n- id: ../c1\n  provider: Mock\n", "clusters[0].id"},
		"provider missing":      {"clusters:\n- id: c1\n", "clusters[0].provider"},
		"no trust domain":       {cluster + "  trustDomain: Example/x\n", "clusters[0].trustDomain"},
		"precedence 0":          {cluster + "  precedence: 0\n", "clusters[0].precedence"},
		"network with a space":  {cluster + "  network: a b\n", "clusters[0].network"},
		"section of another":    {cluster + "  consul: {address: x}\n", "clusters[0].consul"},
		"section missing":       {"clusters:\n- id: c1\n  provider: Kubernetes\n", "clusters[0].kubernetes"},
		"External":              {"clusters:\n- id: c1\n  provider: External\n", "provider External is always there"},
		"MCP":                   {"clusters:\n- id: c1\n  provider: MCP\n", "provider MCP cannot be attached"},
		"M06: plaintext server": {
			"mcp: {servers: [{name: a, address: \"192.0.2.1:15010\"}]}\n",
			"mcp.servers[0].address: 192.0.2.1:15010 is plaintext",
		},
		"M06: two servers": {
			"mcp: {servers: [{name: a, address: \"localhost:1\"}, {name: a, address: \"localhost:2\"}]}\n",
			"mcp.servers[1].name",
		},
		"M06: server without port": {"mcp: {servers: [{name: a, address: x}]}\n", "mcp.servers[0].address"},
		"U13: client without name": {"debug: {clients: [\"\"]}\n", "debug.clients[0]"},
		"U13: no cluster ID":       {"debug: {tokenCluster: ../c1}\n", "debug.tokenCluster"},
		"R48: alias of a space":    {cluster + "  aliases: [a b]\n", "clusters[0].aliases[0]"},
		"R48: alias of two": {
			cluster + "  aliases: [Kubernetes]\n- id: c2\n  provider: Mock\n  aliases: [Kubernetes]\n",
			"clusters[1].aliases[0]: \"Kubernetes\" already names the cluster c1",
		},
		"R48: alias that is an ID":  {cluster + "clusterAliases: {c2: [c1]}\n", "clusterAliases.c2[0]"},
		"all problems of a cluster": {"clusters:\n- id: C1\n  provider: Mock\n  precedence: -1\n", "precedence"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseConfig("x.yaml", []byte(c.content))
			if err == nil {
				t.Fatal("it is accepted")
			}
			if text := err.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, "x.yaml") || strings.Contains(text, "\n") ||
				strings.Contains(text, "s3cr3t") {
				t.Errorf("it says %q, want one line with %q", text, c.want)
			}
		})
	}
}

func TestEmptyConfigIsOne(t *testing.T) {
	for _, content := range []string{"", "\n", "# nothing\n", "---\n", "{}\n", "etcd:\n", "clusters: ~\n", "dataDir: &a x\nconfigDir: *a\n"} {
		if _, err := parseConfig("x.yaml", []byte(content)); err != nil {
			t.Errorf("%q is refused: %v", content, err)
		}
	}
}

func TestConfigFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"missing":   filepath.Join(dir, "missing"),
		"a folder":  dir,
		"endless":   "/dev/zero",
		"too large": writeConfig(t, filepath.Join(dir, "large"), "dataDir: "+strings.Repeat("x", maxConfig)),
	} {
		if _, err := readConfig(path); err == nil || !strings.Contains(err.Error(), "--config") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestFlagsWinOverTheFileAndTheFileOverDefaults(t *testing.T) {
	file := writeConfig(t, filepath.Join(t.TempDir(), "x.yaml"),
		"graphql: {addr: unix:/file/g}\nxds: {addr: unix:/file/x}\ndataDir: /file/data\nclusterID: mine\n")
	s, err := Resolve(Flags{Dev: true, Config: file, XDSAddr: "unix:/flag/x"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addresses.GraphQL.At != "unix:/file/g" || s.Addresses.XDS.At != "unix:/flag/x" || s.Addresses.Health.At != "127.0.0.1:8081" ||
		s.DataDir != "/file/data" || s.ClusterID != "mine" {
		t.Errorf("the settings are %+v", s)
	}
	if !s.Sample || len(s.Clusters) != 2 {
		t.Errorf("a hub in --dev without a cluster has %+v", s.Clusters)
	}
	if s, err := Resolve(Flags{Dev: true, KubeconfigDir: "/etc/kube"}); err != nil || len(s.Clusters) != 0 {
		t.Errorf("a hub that watches a folder has %+v (%v)", s.Clusters, err)
	}
}

// TestR12QuotaOfTheStore: it is a setting within bounds, for the embedded etcd alone.
func TestR12QuotaOfTheStore(t *testing.T) {
	file := writeConfig(t, filepath.Join(t.TempDir(), "x.yaml"), "etcd: {quotaBytes: 33554432}\n")
	for _, c := range []struct {
		given Flags
		quota int64
		wrong string
	}{
		{Flags{}, 0, ""},
		{Flags{Config: file}, 32 << 20, ""},
		{Flags{Config: file, EtcdQuota: 64 << 20}, 64 << 20, ""},
		{Flags{EtcdQuota: 1 << 20}, 0, "--etcd-quota-bytes: must be from 16777216 (16 MiB) to 68719476736 (64 GiB), not 1048576"},
		{Flags{EtcdQuota: 65 << 30}, 0, "--etcd-quota-bytes: must be from"},
		{Flags{EtcdQuota: 32 << 20, EtcdEndpoints: []string{"http://localhost:1"}}, 0, "--quota-backend-bytes"},
		{Flags{Config: file, EtcdEndpoints: []string{"http://localhost:1"}}, 0, "--quota-backend-bytes"},
	} {
		c.given.Dev = true
		s, err := Resolve(c.given)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%+v: %v, want %s", c.given, err, c.wrong)
			}
		} else if err != nil || s.Etcd.QuotaBytes != c.quota {
			t.Errorf("%+v: %d, %v, want %d", c.given, s.Etcd.QuotaBytes, err, c.quota)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(contractConfig))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("clusters:\n- &x {id: c1, provider: Mock}\n- <<: *x\n"))
	clock := testbed.StartClock(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		began := time.Now()
		c, err := parseConfig("x.yaml", data)
		if took := clock.Since(began); took > 5*time.Second {
			t.Errorf("it takes %v", took)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %q", err)
		}
		for _, cluster := range c.Clusters {
			if cluster.ID == "" {
				t.Error("a cluster without an ID is accepted")
			}
		}
	})
}

func TestIDOfTheHubIsTaken(t *testing.T) {
	for _, content := range []string{
		"clusters:\n- {id: hub, provider: Mock}\n",
		"clusterID: east\nclusters:\n- {id: east, provider: Mock}\n",
	} {
		file := writeConfig(t, filepath.Join(t.TempDir(), "x.yaml"), content)
		if _, err := Resolve(Flags{Dev: true, Config: file}); err == nil || !strings.Contains(err.Error(), "clusters[0].id") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func writeConfig(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
