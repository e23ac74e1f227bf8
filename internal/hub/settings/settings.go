// Package settings reads what a hub runs with: flags, then the config file, then defaults.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/internal/hub/listeners"
	"isthmus.dev/isthmus/internal/hub/logs"
	"isthmus.dev/isthmus/internal/hub/sources"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/server"
	"isthmus.dev/isthmus/xds"
)

// What settings are by default.
const (
	DefaultGraphQL   = "127.0.0.1:8080"
	DefaultXDS       = "127.0.0.1:15010"
	DefaultHealth    = "127.0.0.1:8081"
	defaultClusterID = "hub"
)

// UsageError is a mistake in flags or settings.
type UsageError struct{ error }

// Usagef makes one.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Flags are those of serve, as given.
type Flags struct {
	Dev                              bool
	Config, DataDir, KubeconfigDir   string
	ConfigDir, SecretDir, SealKey    string
	EtcdEndpoints                    []string
	EtcdQuota                        int64
	NewStore                         bool
	GraphQLAddr, XDSAddr, HealthAddr string
	TLSCert, TLSKey, TLSClientCA     string
	Log                              logs.Config
}

// Settings are what a hub runs with: flags, then the config file, then defaults.
type Settings struct {
	// Output takes the log, and with dev what a newcomer may do.
	Output io.Writer
	// AdoptLog has libraries use the hub's log; nil: they do not.
	AdoptLog func(*slog.Logger)
	// Drain is how long requests and streams may go on after the end was asked for.
	Drain time.Duration

	Dev            bool
	DataDir        string
	KubeconfigDir  string
	SecretDir      string               // of secrets for gateways; empty: none
	SealKey        string               // file of the keys that seal credentials; empty: one in the data folder
	ClusterID      federation.ClusterID // of the hub itself
	Addresses      listeners.Addresses
	Connections    listeners.Limits
	Streams        xds.Limits              // zero fields: the defaults
	TLS            server.CertificateFiles // zero with Dev
	TLSNames       []string                // of the certificate that the hub's authority signs; none: it is in TLS
	Etcd           Etcd
	NewStore       bool // begin with an empty store where the embedded one is gone
	Identity       identities.Settings
	Log            logs.Config
	Sample         bool // the clusters are the embedded sample
	Clusters       []kinds.Cluster
	Limits         federation.Limits                 // of clusters that name none themselves
	ClusterAliases map[federation.ClusterID][]string // of the clusters of the watched folder
	// Remotes are where objects of attached clusters name further clusters.
	Remotes        Remotes
	Sources        sources.Settings // of configuration
	Unread         []Unread         // configuration that is named and not read
	MCPClients     []string         // that may read the hub's
	Debug          DebugConfig
	AllowedHosts   []string // by which the GraphQL address may be reached, beside the certificate's
	AllowedOrigins []string // of pages elsewhere that may use it
	HideSchema     bool     // refuse introspection
}

// Resolve reads the config file and joins everything; it opens nothing else.
func Resolve(f Flags) (Settings, error) {
	c, err := readConfig(f.Config)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{
		Output: io.Discard, Drain: 5 * time.Second, Dev: f.Dev, KubeconfigDir: f.KubeconfigDir,
		Sources:   sources.Settings{Dir: cmp.Or(f.ConfigDir, c.ConfigDir), Servers: c.MCP.Servers},
		SecretDir: cmp.Or(f.SecretDir, c.SecretDir),
		SealKey:   cmp.Or(f.SealKey, os.Getenv("ISTHMUS_SEAL_KEY"), c.SealKey),
		ClusterID: cmp.Or(c.ClusterID, defaultClusterID),
		Addresses: listeners.Addresses{
			GraphQL: listeners.Address{Flag: "--graphql-addr", At: cmp.Or(f.GraphQLAddr, c.GraphQL.Addr, DefaultGraphQL)},
			XDS:     listeners.Address{Flag: "--xds-addr", At: cmp.Or(f.XDSAddr, c.XDS.Addr, DefaultXDS)},
			Health:  listeners.Address{Flag: "--health-addr", At: cmp.Or(f.HealthAddr, DefaultHealth)},
		},
		TLS: server.CertificateFiles{
			Cert: cmp.Or(f.TLSCert, c.TLS.Cert), Key: cmp.Or(f.TLSKey, c.TLS.Key), ClientCA: cmp.Or(f.TLSClientCA, c.TLS.ClientCA),
		},
		TLSNames: c.TLS.Names,
		Log:      logs.Config{Format: cmp.Or(f.Log.Format, c.Log.Format, logs.Text), Level: cmp.Or(f.Log.Level, c.Log.Level, "info")},
		Etcd:     c.Etcd, NewStore: f.NewStore, Clusters: c.Clusters, ClusterAliases: c.ClusterAliases,
		AllowedHosts: c.GraphQL.AllowedHosts, AllowedOrigins: c.GraphQL.AllowedOrigins,
		MCPClients: c.MCP.Clients, Debug: c.Debug,
		HideSchema: c.GraphQL.Introspection != nil && !*c.GraphQL.Introspection,
	}
	if err := c.GraphQL.checkHosts(); err != nil {
		return Settings{}, err
	}
	if err := s.chooseSources(c.Sources); err != nil {
		return Settings{}, fmt.Errorf("reading %s: %w", f.Config, err)
	}
	s.Remotes, err = c.remotes()
	if err != nil {
		return Settings{}, err
	}
	if len(f.EtcdEndpoints) > 0 {
		s.Etcd.Endpoints = f.EtcdEndpoints
	}
	s.Etcd.QuotaBytes = cmp.Or(f.EtcdQuota, s.Etcd.QuotaBytes)
	if err := s.addSample(); err != nil {
		return Settings{}, err
	}
	s.Limits, err = c.ClusterLimits.Read("clusterLimits")
	if err != nil {
		return Settings{}, err
	}
	s.Identity, err = c.Identity.Settings()
	if err != nil {
		return Settings{}, err
	}
	s.Connections, s.Streams, err = c.connections(server.Descriptors())
	if err != nil {
		return Settings{}, err
	}
	s.DataDir, err = dataDirOf(cmp.Or(f.DataDir, c.DataDir))
	if err != nil {
		return Settings{}, err
	}
	return s, errors.Join(asUsage(s.Log.Check()), s.checkTLS(f), s.checkAddresses(), s.checkEtcd(), s.checkClusterID())
}

// addSample attaches the clusters of the embedded sample to a hub with --dev that has none.
func (s *Settings) addSample() error {
	if !s.Dev || len(s.Clusters) > 0 || s.KubeconfigDir != "" {
		return nil
	}
	sample, err := parseConfig("the embedded sample", sampleConfig)
	s.Clusters, s.Sample = sample.Clusters, true
	return err
}

func dataDirOf(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", Usagef("--data-dir: this user has no home directory; name a folder")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "isthmus"), nil
}

func (s *Settings) checkTLS(f Flags) error {
	if s.Dev {
		s.TLSNames = nil
	} else if err := s.checkTLSNames(); err != nil || len(s.TLSNames) > 0 {
		return err
	}
	given := map[string]string{"--tls-cert": s.TLS.Cert, "--tls-key": s.TLS.Key, "--tls-client-ca": s.TLS.ClientCA}
	var missing []string
	for _, name := range []string{"--tls-cert", "--tls-key", "--tls-client-ca"} {
		if given[name] == "" {
			missing = append(missing, name)
		}
	}
	switch {
	case s.Dev && f.TLSCert+f.TLSKey+f.TLSClientCA != "":
		return Usagef("--dev uses plaintext and excludes --tls-cert, --tls-key and --tls-client-ca; remove one or the other")
	case s.Dev:
		s.TLS = server.CertificateFiles{}
	case len(missing) > 0:
		return Usagef("mutual TLS needs %s; set all three, or use --dev for plaintext on loopback addresses", strings.Join(missing, ", "))
	}
	return nil
}

// checkTLSNames checks the names of the certificate that the hub's own authority signs.
func (s *Settings) checkTLSNames() error {
	if len(s.TLSNames) == 0 {
		return nil
	}
	for i, name := range s.TLSNames {
		if _, err := netip.ParseAddr(name); err == nil {
			continue
		}
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return Usagef("tls.names[%d]: %q is neither a DNS name in lower case nor an IP address", i, name)
		}
	}
	switch {
	case s.TLS.Cert+s.TLS.Key != "":
		return Usagef("tls.names has the hub's CA sign the hub's certificate, and excludes --tls-cert and --tls-key; remove one or the other")
	case s.TLS.ClientCA == "":
		return Usagef("tls.names needs --tls-client-ca too, the CAs that sign certificates of GraphQL clients")
	case !s.Identity.Signs():
		return Usagef("tls.names needs a CA of the hub, which identity.ca: none turns off; name a certificate with --tls-cert and --tls-key")
	}
	return nil
}

func (s *Settings) checkAddresses() error {
	used := map[string]string{}
	var wrong []error
	for _, l := range []listeners.Address{s.Addresses.GraphQL, s.Addresses.XDS, s.Addresses.Health} {
		if other, taken := used[l.At]; taken {
			wrong = append(wrong, Usagef("%s and %s are both %q; use different addresses", other, l.Flag, l.At))
		}
		used[l.At] = l.Flag
	}
	return errors.Join(wrong...)
}

// The bounds of the embedded etcd's quota.
const (
	leastQuota = 16 << 20
	mostQuota  = 64 << 30
)

func (s *Settings) checkEtcd() error {
	for _, endpoint := range s.Etcd.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return Usagef("--etcd-endpoints: each must be a URL such as https://etcd.example:2379, without a user")
		}
		ip, err := netip.ParseAddr(u.Hostname())
		local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
		if u.Scheme == "http" && !local {
			return Usagef("--etcd-endpoints: %s is plaintext to another machine; use https", u.Host)
		}
	}
	outside := len(s.Etcd.Endpoints) > 0
	switch quota := s.Etcd.QuotaBytes; {
	case outside && quota != 0:
		return Usagef("--etcd-quota-bytes: is for the embedded etcd; set the quota of an etcd outside with its own --quota-backend-bytes")
	case outside && s.NewStore:
		return Usagef("--new-store: is for the embedded etcd; omit it, or omit --etcd-endpoints")
	case quota != 0 && (quota < leastQuota || quota > mostQuota):
		return Usagef("--etcd-quota-bytes: must be from %d (16 MiB) to %d (64 GiB), not %d", leastQuota, mostQuota, quota)
	}
	if (s.Etcd.TLS.Cert == "") != (s.Etcd.TLS.Key == "") {
		return fmt.Errorf("etcd.tls: cert and key belong together; give both or none")
	}
	return nil
}

func (s *Settings) checkClusterID() error {
	if err := kube.ValidateClusterID(string(s.ClusterID)); err != nil {
		return fmt.Errorf("clusterID %q: %w", s.ClusterID, err)
	}
	for i, c := range s.Clusters {
		if c.ID == s.ClusterID {
			return fmt.Errorf("clusters[%d].id: %q is the hub's own ID, under which External services stand; give the cluster another one, or the hub by clusterID", i, c.ID)
		}
	}
	return nil
}
