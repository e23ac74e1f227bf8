package main

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

const (
	defaultGraphQL   = "127.0.0.1:8080"
	defaultXDS       = "127.0.0.1:15010"
	defaultHealth    = "127.0.0.1:8081"
	defaultClusterID = "hub"
	// defaultRemoteNamespace is where Istio has such Secrets.
	defaultRemoteNamespace = "istio-system"
)

// usageError is a mistake in flags or settings.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// flags are those of serve, as given.
type flags struct {
	dev                              bool
	config, dataDir, kubeconfigDir   string
	configDir, secretDir, sealKey    string
	etcdEndpoints                    []string
	etcdQuota                        int64
	newStore                         bool
	graphqlAddr, xdsAddr, healthAddr string
	tlsCert, tlsKey, tlsClientCA     string
	log                              logConfig
}

// settings are what a hub runs with: flags, then the config file, then defaults.
type settings struct {
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
	log           logConfig
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

// resolve reads the config file and joins everything; it opens nothing else.
func resolve(f flags) (settings, error) {
	var c configFile
	if f.config != "" {
		var err error
		if c, err = readConfig(f.config); err != nil {
			return settings{}, err
		}
	}
	s := settings{
		Output: io.Discard, Drain: 5 * time.Second, dev: f.dev, configFile: f.config, kubeconfigDir: f.kubeconfigDir,
		configDir:   cmp.Or(f.configDir, c.ConfigDir),
		secretDir:   cmp.Or(f.secretDir, c.SecretDir),
		sealKey:     cmp.Or(f.sealKey, os.Getenv("ISTHMUS_SEAL_KEY"), c.SealKey),
		clusterID:   cmp.Or(c.ClusterID, defaultClusterID),
		graphqlAddr: cmp.Or(f.graphqlAddr, c.GraphQL.Addr, defaultGraphQL),
		xdsAddr:     cmp.Or(f.xdsAddr, c.XDS.Addr, defaultXDS),
		healthAddr:  cmp.Or(f.healthAddr, defaultHealth),
		tls: server.CertificateFiles{
			Cert: cmp.Or(f.tlsCert, c.TLS.Cert), Key: cmp.Or(f.tlsKey, c.TLS.Key), ClientCA: cmp.Or(f.tlsClientCA, c.TLS.ClientCA),
		},
		log:  logConfig{Format: cmp.Or(f.log.Format, c.Log.Format, textFormat), Level: cmp.Or(f.log.Level, c.Log.Level, "info")},
		etcd: c.Etcd, newStore: f.newStore, clusters: c.Clusters,
		allowedHosts: c.GraphQL.AllowedHosts, allowedOrigins: c.GraphQL.AllowedOrigins,
		hideSchema:      c.GraphQL.Introspection != nil && !*c.GraphQL.Introspection,
		remoteNamespace: cmp.Or(c.RemoteSecrets.Namespace, defaultRemoteNamespace),
	}
	err := c.GraphQL.checkHosts()
	if err != nil {
		return settings{}, err
	}
	if s.remoteHolders, err = c.RemoteSecrets.holders(); err != nil {
		return settings{}, err
	}
	if len(f.etcdEndpoints) > 0 {
		s.etcd.Endpoints = f.etcdEndpoints
	}
	s.etcd.QuotaBytes = cmp.Or(f.etcdQuota, s.etcd.QuotaBytes)
	if s.dev && len(s.clusters) == 0 && s.kubeconfigDir == "" {
		sample, err := parseConfig("the embedded sample", sampleConfig)
		if err != nil {
			return settings{}, err
		}
		s.clusters, s.sample = sample.Clusters, true
	}
	s.clusterAliases = c.ClusterAliases
	if s.limits, err = c.ClusterLimits.limits("clusterLimits"); err != nil {
		return settings{}, err
	}
	if s.identity, err = c.Identity.settings(); err != nil {
		return settings{}, err
	}
	if s.connections, err = c.connections(server.Descriptors()); err != nil {
		return settings{}, err
	}
	if s.dataDir, err = dataDirOf(cmp.Or(f.dataDir, c.DataDir)); err != nil {
		return settings{}, err
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

func (s *settings) checkTLS(f flags) error {
	given := map[string]string{"--tls-cert": s.tls.Cert, "--tls-key": s.tls.Key, "--tls-client-ca": s.tls.ClientCA}
	var missing []string
	for _, name := range []string{"--tls-cert", "--tls-key", "--tls-client-ca"} {
		if given[name] == "" {
			missing = append(missing, name)
		}
	}
	switch {
	case s.dev && f.tlsCert+f.tlsKey+f.tlsClientCA != "":
		return usagef("--dev uses plaintext and excludes --tls-cert, --tls-key and --tls-client-ca; remove one or the other")
	case s.dev:
		s.tls = server.CertificateFiles{}
	case len(missing) > 0:
		return usagef("mutual TLS needs %s; set all three, or use --dev for plaintext on loopback addresses", strings.Join(missing, ", "))
	}
	return nil
}

func (s *settings) checkAddresses() error {
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

func (s *settings) listeners() []listenerSetting {
	return []listenerSetting{{"--graphql-addr", s.graphqlAddr}, {"--xds-addr", s.xdsAddr}, {"--health-addr", s.healthAddr}}
}

// The bounds of the embedded etcd's quota.
const (
	leastQuota = 16 << 20
	mostQuota  = 64 << 30
)

func (s *settings) checkEtcd() error {
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

func (s *settings) checkClusterID() error {
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
