package settings

import (
	_ "embed" // the sample
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/internal/hub/logs"
	"isthmus.dev/isthmus/internal/keyfile"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/yamlfile"
)

//go:embed sample.yaml
var sampleConfig []byte

// configFile is the config file. What it does not name is a mistake in the file.
type configFile struct {
	GraphQL   graphqlConfig        `yaml:"graphql"`
	XDS       xdsConfig            `yaml:"xds"`
	TLS       serverTLSConfig      `yaml:"tls"`
	DataDir   string               `yaml:"dataDir"`
	ConfigDir string               `yaml:"configDir"`
	SecretDir string               `yaml:"secretDir"`
	SealKey   string               `yaml:"sealKey"`
	ClusterID federation.ClusterID `yaml:"clusterID"`
	Log       logs.Config          `yaml:"log"`
	Identity  identities.Config    `yaml:"identity"`
	Etcd      Etcd                 `yaml:"etcd"`
	Clusters  []kinds.Cluster      `yaml:"clusters"`
	// ClusterLimits are those of clusters that name none themselves.
	ClusterLimits kinds.Limits `yaml:"clusterLimits"`
	// ClusterAliases are those of the clusters of the watched folder, by ID.
	ClusterAliases map[federation.ClusterID][]string `yaml:"clusterAliases"`
	// RemoteSecrets are those of attached clusters that name further clusters.
	RemoteSecrets remoteSecretsConfig `yaml:"remoteSecrets"`
	// ClusterProfiles are those of attached clusters that name further clusters.
	ClusterProfiles clusterProfilesConfig `yaml:"clusterProfiles"`
	// Sources are those of configuration; absent: all that have settings.
	Sources []string `yaml:"sources"`
	// MCP is configuration that is exchanged with other control planes.
	MCP mcpConfig `yaml:"mcp"`
	// Debug is for Istio's tools that ask about the hub.
	Debug DebugConfig `yaml:"debug"`
}

// DebugConfig says who may ask about the hub with Istio's tools; nobody by default.
type DebugConfig struct {
	// Clients are SPIFFE IDs, names in certificates of operators, or * for all.
	Clients []string `yaml:"clients"`
	// TokenCluster reviews the tokens of callers that name no cluster; empty: none does.
	TokenCluster federation.ClusterID `yaml:"tokenCluster"`
	// PortForward lets those ask who reach the health address from the hub's own pod.
	PortForward bool `yaml:"portForward"`
}

func (c DebugConfig) check() error {
	for i, id := range c.Clients {
		if id == "" {
			return fmt.Errorf("debug.clients[%d]: is empty; name a SPIFFE ID, such as spiffe://cluster.local/ns/istio-system/sa/default, or *", i)
		}
	}
	if c.TokenCluster == "" {
		return nil
	}
	if err := kube.ValidateClusterID(string(c.TokenCluster)); err != nil {
		return fmt.Errorf("debug.tokenCluster: %q: %w", c.TokenCluster, err)
	}
	return nil
}

type remoteSecretsConfig struct {
	Namespace string `yaml:"namespace"`
	// Clusters are those whose Secrets are read; none by default.
	Clusters []federation.ClusterID `yaml:"clusters"`
}

type clusterProfilesConfig struct {
	Namespace string `yaml:"namespace"`
	// Clusters are those whose ClusterProfiles are read; none by default.
	Clusters []federation.ClusterID `yaml:"clusters"`
	// Provider is the access provider that is used.
	Provider string `yaml:"provider"`
	// Secret is the name of the Secret with the token of a ClusterProfile.
	Secret string `yaml:"secret"`
}

type mcpConfig struct {
	Servers []mcp.Server `yaml:"servers"`
	Clients []string     `yaml:"clients"`
}

// check reports what is wrong with a server or a client.
func (c mcpConfig) check() error {
	names := map[string]bool{}
	for i, s := range c.Servers {
		if err := s.Check(); err != nil {
			return fmt.Errorf("mcp.servers[%d].%w", i, err)
		}
		if names[s.Name] {
			return fmt.Errorf("mcp.servers[%d].name: two servers are called %s", i, s.Name)
		}
		names[s.Name] = true
	}
	for i, id := range c.Clients {
		if id != "*" && !strings.HasPrefix(id, "spiffe://") {
			return fmt.Errorf("mcp.clients[%d]: %q is not a SPIFFE ID, such as spiffe://cluster.local/ns/istio-system/sa/istiod, nor *", i, id)
		}
	}
	return nil
}

type graphqlConfig struct {
	Addr                    string   `yaml:"addr"`
	AllowedHosts            []string `yaml:"allowedHosts"`
	AllowedOrigins          []string `yaml:"allowedOrigins"`
	Introspection           *bool    `yaml:"introspection"` // nil: true
	MaxConnections          int      `yaml:"maxConnections"`
	MaxConnectionsPerSource int      `yaml:"maxConnectionsPerSource"`
}

type xdsConfig struct {
	Addr                           string `yaml:"addr"`
	MaxConnections                 int    `yaml:"maxConnections"`
	MaxConnectionsPerSource        int    `yaml:"maxConnectionsPerSource"`
	IdleTimeout                    string `yaml:"idleTimeout"`
	MaxStreamsPerIdentity          int    `yaml:"maxStreamsPerIdentity"`
	MaxNamesPerType                int    `yaml:"maxNamesPerType"`
	MaxVariantsPerIdentity         int    `yaml:"maxVariantsPerIdentity"`
	MaxUnknownNameBytesPerIdentity int    `yaml:"maxUnknownNameBytesPerIdentity"`
	MaxNodeBytesPerIdentity        int    `yaml:"maxNodeBytesPerIdentity"`
	MaxPartialMessageBytes         int    `yaml:"maxPartialMessageBytes"`
}

type serverTLSConfig struct {
	Cert     string   `yaml:"cert"`
	Key      string   `yaml:"key"`
	ClientCA string   `yaml:"clientCA"`
	Names    []string `yaml:"names"`
}

// Etcd is where the store of record is.
type Etcd struct {
	Endpoints  []string          `yaml:"endpoints"`
	TLS        keyfile.ClientTLS `yaml:"tls"`
	QuotaBytes int64             `yaml:"quotaBytes"` // of the embedded one; 0: the default
}

// maxConfig is the largest config file in bytes.
const maxConfig = 1 << 20

// readConfig reads the config file; without a path it is empty.
func readConfig(path string) (configFile, error) {
	if path == "" {
		return configFile{}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return configFile{}, fmt.Errorf("--config: %w", err)
	}
	if !info.Mode().IsRegular() {
		return configFile{}, fmt.Errorf("--config %s: is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return configFile{}, fmt.Errorf("--config: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return configFile{}, fmt.Errorf("--config: %w", err)
	}
	if len(data) > maxConfig {
		return configFile{}, fmt.Errorf("--config %s: is larger than 1 MiB", path)
	}
	return parseConfig(path, data)
}

// parseConfig reads one YAML document and refuses unknown and repeated keys with
// line and column. No content of the file is repeated in its errors but keys.
func parseConfig(name string, data []byte) (c configFile, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading %s: it is not YAML that can be read", name)
		}
	}()
	if err := yamlfile.Read(data, &c); err != nil {
		return configFile{}, fmt.Errorf("reading %s: %w", name, err)
	}
	_, err = c.ClusterLimits.Read("clusterLimits")
	wrong := []error{err}
	for i, cluster := range c.Clusters {
		wrong = append(wrong, cluster.Check(fmt.Sprintf("clusters[%d]", i)))
	}
	wrong = append(wrong, c.checkAliases(), c.MCP.check(), c.Debug.check())
	if err := errors.Join(wrong...); err != nil {
		return configFile{}, fmt.Errorf("reading %s: %s", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return c, nil
}
