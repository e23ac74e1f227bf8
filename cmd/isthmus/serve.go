package main

import (
	"errors"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/hub"
	"isthmus.dev/isthmus/internal/hub/settings"
)

// serveCommand runs a hub; with may change its settings.
func serveCommand(io cmdutil.Streams, with func(*settings.Settings)) *cobra.Command {
	var given settings.Flags
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the hub", Args: cmdutil.NoArguments,
		Long: `Run the hub until SIGTERM or SIGINT.

Without --dev, GraphQL and xDS need mutual TLS: --tls-cert, --tls-key and
--tls-client-ca (or tls in the config file). With --dev they use plain text on
loopback addresses and unix sockets, and a hub without clusters attaches a sample.
Flags take precedence over the config file.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := settings.Resolve(given)
			if err != nil {
				return asUsage(err)
			}
			s.Output = io.Err
			with(&s)
			h, err := hub.New(s)
			if err != nil {
				return asUsage(err)
			}
			return asUsage(h.Run(cmd.Context()))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&given.Dev, "dev", false, "disable authentication; plain text on loopback addresses and unix sockets")
	f.StringVar(&given.Config, "config", "", "config `FILE`")
	f.StringVar(&given.DataDir, "data-dir", "", "`DIR` of the hub's data (default: a folder in the user's state directory)")
	f.StringSliceVar(&given.EtcdEndpoints, "etcd-endpoints", nil, "`URL`s of an external etcd (default: an embedded one)")
	f.Int64Var(&given.EtcdQuota, "etcd-quota-bytes", 0, "`BYTES` that the embedded etcd may hold (default 2 GiB)")
	f.BoolVar(&given.NewStore, "new-store", false, "start with an empty configuration if the embedded etcd of this data folder is missing")
	f.StringVar(&given.GraphQLAddr, "graphql-addr", "", "HOST:PORT or unix:PATH of GraphQL and the pages (default "+
		settings.DefaultGraphQL+")")
	f.StringVar(&given.XDSAddr, "xds-addr", "", "HOST:PORT or unix:PATH of xDS (default "+settings.DefaultXDS+")")
	f.StringVar(&given.HealthAddr, "health-addr", "", "HOST:PORT or unix:PATH of /healthz, /readyz and /metrics (default "+
		settings.DefaultHealth+")")
	f.StringVar(&given.KubeconfigDir, "kubeconfig-dir", "", "watched `DIR` of kubeconfigs; each file attaches the cluster of its name")
	f.StringVar(&given.ConfigDir, "config-dir", "", "watched `DIR` of manifests, a read-only source of configuration beside the store")
	f.StringVar(&given.SecretDir, "secret-dir", "", "watched `DIR` of secrets for gateways: NAMESPACE/NAME/tls.crt, tls.key, ca.crt")
	f.StringVar(&given.SealKey, "seal-key", "",
		"`FILE` of the keys that encrypt the credentials of clusters (ISTHMUS_SEAL_KEY; default: seal.key in the data folder, created at the first start)")
	f.StringVar(&given.TLSCert, "tls-cert", "", "certificate `FILE` of the hub")
	f.StringVar(&given.TLSKey, "tls-key", "", "key `FILE` of the hub")
	f.StringVar(&given.TLSClientCA, "tls-client-ca", "", "`FILE` of the CAs that sign clients' certificates")
	f.StringVar(&given.Log.Format, "log-format", "", "`FORMAT` of the log: text or json (default text)")
	f.StringVar(&given.Log.Level, "log-level", "",
		"minimum `LEVEL` of the log: debug, info, warn or error (default info); POST /logging?level=LEVEL changes it while the hub runs")
	for _, name := range []string{"etcd-endpoints", "etcd-quota-bytes"} {
		f.Lookup(name).DefValue = "" // the list's own way of saying nothing, and the default is in the text
	}
	cmdutil.OnceOnly(f)
	return cmdutil.Finish(cmd)
}

// asUsage has the command line tell a mistake in flags as it tells its own.
func asUsage(err error) error {
	var usage settings.UsageError
	if errors.As(err, &usage) {
		return cmdutil.Usagef("%w", err)
	}
	return err
}
