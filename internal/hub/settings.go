package hub

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

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/server"
)

// What settings are where nobody says otherwise.
const (
	DefaultGraphQL   = "127.0.0.1:8080"
	DefaultXDS       = "127.0.0.1:15010"
	DefaultHealth    = "127.0.0.1:8081"
	defaultClusterID = "hub"
	// defaultRemoteNamespace is where Istio has such Secrets.
	defaultRemoteNamespace = "istio-system"
)

// UsageError is a mistake in flags or settings.
type UsageError struct{ error }

func usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

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
	Log                              LogConfig
}

// Settings are what a hub runs with: flags, then the config file, then defaults.
type Settings struct {
	// Output takes the log, and with dev what a newcomer may do.
	Output io.Writer
	// AdoptLog has libraries use the hub's log; nil: they do not.
	AdoptLog func(*slog.Logger)
	// Drain is how long requests and streams may go on after the end was asked for.
	Drain time.Duration

	dev           bool
	configFile    string
	dataDir       string
	kubeconfigDir string
	configDir     string // of manifests; empty: none
	secretDir     string // of secrets for gateways; empty: none
	sealKey       string // file of the keys that seal credentials; empty: one in the data folder
	clusterID     string
	graphqlAddr   string
	xdsAddr       string
	healthAddr    string
	tls           server.CertificateFiles // zero with dev
	etcd          etcdConfig
	newStore      bool // begin with an empty store where the embedded one is gone
	clusters      []clusterConfig
	identity      identitySettings
	connections   connectionSettings
	log           LogConfig
	sample        bool // the clusters are the embedded sample
	// remoteNamespace is where Secrets of remoteHolders name further clusters.
	remoteNamespace string
	remoteHolders   map[federation.ClusterID]bool
	allowedHosts    []string                          // by which the GraphQL address may be reached, beside the certificate's
	allowedOrigins  []string                          // of pages elsewhere that may use it
	hideSchema      bool                              // refuse introspection
	limits          federation.Limits                 // of clusters that name none themselves
	clusterAliases  map[federation.ClusterID][]string // of the clusters of the watched folder
}

// Resolve reads the config file and joins everything; it opens nothing else.
func Resolve(f Flags) (Settings, error) {
	var c configFile
	if f.Config != "" {
		var err error
		if c, err = readConfig(f.Config); err != nil {
			return Settings{}, err
		}
	}
	s := Settings{
		Output: io.Discard, Drain: 5 * time.Second, dev: f.Dev, configFile: f.Config, kubeconfigDir: f.KubeconfigDir,
		configDir:   cmp.Or(f.ConfigDir, c.ConfigDir),
		secretDir:   cmp.Or(f.SecretDir, c.SecretDir),
		sealKey:     cmp.Or(f.SealKey, os.Getenv("ISTHMUS_SEAL_KEY"), c.SealKey),
		clusterID:   cmp.Or(c.ClusterID, defaultClusterID),
		graphqlAddr: cmp.Or(f.GraphQLAddr, c.GraphQL.Addr, DefaultGraphQL),
		xdsAddr:     cmp.Or(f.XDSAddr, c.XDS.Addr, DefaultXDS),
		healthAddr:  cmp.Or(f.HealthAddr, DefaultHealth),
		tls: server.CertificateFiles{
			Cert: cmp.Or(f.TLSCert, c.TLS.Cert), Key: cmp.Or(f.TLSKey, c.TLS.Key), ClientCA: cmp.Or(f.TLSClientCA, c.TLS.ClientCA),
		},
		log:  LogConfig{Format: cmp.Or(f.Log.Format, c.Log.Format, textFormat), Level: cmp.Or(f.Log.Level, c.Log.Level, "info")},
		etcd: c.Etcd, newStore: f.NewStore, clusters: c.Clusters,
		allowedHosts: c.GraphQL.AllowedHosts, allowedOrigins: c.GraphQL.AllowedOrigins,
		hideSchema:      c.GraphQL.Introspection != nil && !*c.GraphQL.Introspection,
		remoteNamespace: cmp.Or(c.RemoteSecrets.Namespace, defaultRemoteNamespace),
	}
	err := c.GraphQL.checkHosts()
	if err != nil {
		return Settings{}, err
	}
	if s.remoteHolders, err = c.RemoteSecrets.holders(); err != nil {
		return Settings{}, err
	}
	if len(f.EtcdEndpoints) > 0 {
		s.etcd.Endpoints = f.EtcdEndpoints
	}
	s.etcd.QuotaBytes = cmp.Or(f.EtcdQuota, s.etcd.QuotaBytes)
	if s.dev && len(s.clusters) == 0 && s.kubeconfigDir == "" {
		sample, err := parseConfig("the embedded sample", sampleConfig)
		if err != nil {
			return Settings{}, err
		}
		s.clusters, s.sample = sample.Clusters, true
	}
	s.clusterAliases = c.ClusterAliases
	if s.limits, err = c.ClusterLimits.limits("clusterLimits"); err != nil {
		return Settings{}, err
	}
	if s.identity, err = c.Identity.settings(); err != nil {
		return Settings{}, err
	}
	if s.connections, err = c.connections(server.Descriptors()); err != nil {
		return Settings{}, err
	}
	if s.dataDir, err = dataDirOf(cmp.Or(f.DataDir, c.DataDir)); err != nil {
		return Settings{}, err
	}
	return s, errors.Join(s.log.check(), s.checkTLS(f), s.checkAddresses(), s.checkEtcd(), s.checkClusterID())
}

func dataDirOf(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usagef("--data-dir: this user has no home directory; name a folder")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "isthmus"), nil
}

func (s *Settings) checkTLS(f Flags) error {
	given := map[string]string{"--tls-cert": s.tls.Cert, "--tls-key": s.tls.Key, "--tls-client-ca": s.tls.ClientCA}
	var missing []string
	for _, name := range []string{"--tls-cert", "--tls-key", "--tls-client-ca"} {
		if given[name] == "" {
			missing = append(missing, name)
		}
	}
	switch {
	case s.dev && f.TLSCert+f.TLSKey+f.TLSClientCA != "":
		return usagef("--dev uses plaintext and excludes --tls-cert, --tls-key and --tls-client-ca; remove one or the other")
	case s.dev:
		s.tls = server.CertificateFiles{}
	case len(missing) > 0:
		return usagef("mutual TLS needs %s; set all three, or use --dev for plaintext on loopback addresses", strings.Join(missing, ", "))
	}
	return nil
}

func (s *Settings) checkAddresses() error {
	used := map[string]string{}
	var wrong []error
	for _, l := range s.listeners() {
		if other, taken := used[l.addr]; taken {
			wrong = append(wrong, usagef("%s and %s are both %q; use different addresses", other, l.flag, l.addr))
		}
		used[l.addr] = l.flag
	}
	return errors.Join(wrong...)
}

// listenerSetting is one address to listen on and the flag that names it.
type listenerSetting struct{ flag, addr string }

func (s *Settings) listeners() []listenerSetting {
	return []listenerSetting{{"--graphql-addr", s.graphqlAddr}, {"--xds-addr", s.xdsAddr}, {"--health-addr", s.healthAddr}}
}

// The bounds of the embedded etcd's quota.
const (
	leastQuota = 16 << 20
	mostQuota  = 64 << 30
)

func (s *Settings) checkEtcd() error {
	for _, endpoint := range s.etcd.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return usagef("--etcd-endpoints: each must be a URL such as https://etcd.example:2379, without a user")
		}
		ip, err := netip.ParseAddr(u.Hostname())
		local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
		if u.Scheme == "http" && !local {
			return usagef("--etcd-endpoints: %s is plaintext to another machine; use https", u.Host)
		}
	}
	outside := len(s.etcd.Endpoints) > 0
	switch quota := s.etcd.QuotaBytes; {
	case outside && quota != 0:
		return usagef("--etcd-quota-bytes: is for the embedded etcd; set the quota of an etcd outside with its own --quota-backend-bytes")
	case outside && s.newStore:
		return usagef("--new-store: is for the embedded etcd; leave it out, or leave out --etcd-endpoints")
	case quota != 0 && (quota < leastQuota || quota > mostQuota):
		return usagef("--etcd-quota-bytes: must be from %d (16 MiB) to %d (64 GiB), not %d", leastQuota, mostQuota, quota)
	}
	if (s.etcd.TLS.Cert == "") != (s.etcd.TLS.Key == "") {
		return fmt.Errorf("etcd.tls: cert and key belong together; give both or none")
	}
	return nil
}

func (s *Settings) checkClusterID() error {
	if err := kube.ValidateClusterID(s.clusterID); err != nil {
		return fmt.Errorf("clusterID %q: %w", s.clusterID, err)
	}
	for i, c := range s.clusters {
		if string(c.ID) == s.clusterID {
			return fmt.Errorf("clusters[%d].id: %q is the hub's own ID, under which External services stand; give the cluster another one, or the hub by clusterID", i, c.ID)
		}
	}
	return nil
}
