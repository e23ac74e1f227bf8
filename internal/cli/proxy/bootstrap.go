// Package proxy has the commands for proxies.
package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/xds/bootstrap"
)

// bootstrapFlags are those of proxy bootstrap, as given.
type bootstrapFlags struct {
	kind, hub, admin, locality, dir string
	ips                             []string
	labels                          map[string]string
	heapMiB                         uint64
	options                         bootstrap.Options
}

// Command shows proxies, and what they were sent, and generates their bootstrap.
func Command(io cmdutil.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "proxy", Short: "Show the status and resources of proxies, and generate an Envoy bootstrap", Args: cmdutil.NoArguments,
		Example: "  isthmus proxy status\n  isthmus proxy bootstrap --help",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(bootstrapCommand(io), proxyStatusCommand(io), proxyConfigCommand(io))
	return cmdutil.Finish(cmd)
}

func bootstrapCommand(io cmdutil.Streams) *cobra.Command {
	var given bootstrapFlags
	cmd := &cobra.Command{
		Use: "bootstrap --name POD --namespace NS --cluster-id ID --ip IP --hub HOST:PORT", Short: "Generate an Envoy bootstrap",
		Args: cmdutil.NoArguments,
		Long: `Generate an Envoy bootstrap: the node, the address of the hub, and limits that
protect Envoy from overload. The command does not connect to a hub, and the output
contains no secrets: it names the files of certificates. With --dir, Envoy reloads
certificates when they are rotated.`,
		Example: `  isthmus proxy bootstrap --name web-1 --namespace shop --cluster-id c1 --ip 10.0.0.7 --hub unix:/run/isthmus/xds
  isthmus proxy bootstrap --type sni-dnat --name gw-1 --namespace infra --cluster-id c1 --network n1 --ip 10.0.0.9 \
    --hub hub.example:15010 --hub-ca ca.pem --cert gw.pem --key gw-key.pem --dir /etc/isthmus/proxy`,
		RunE: func(*cobra.Command, []string) error { return writeBootstrap(io, given) },
	}
	f, o := cmd.Flags(), &given.options
	f.StringVar(&given.kind, "type", "sidecar", "`TYPE` of the proxy: sidecar, gateway, or sni-dnat")
	f.StringVar(&o.Name, "name", "", "`NAME` of the proxy; on Kubernetes, of its pod")
	f.StringVar(&o.Namespace, "namespace", "", "`NAMESPACE` of the proxy")
	f.StringVar(&o.ServiceAccount, "service-account", "", "service `ACCOUNT` of the proxy (default: default)")
	f.StringVar(&o.Cluster, "cluster-id", "", "`ID` of the proxy's cluster in the hub")
	f.StringVar(&o.Network, "network", "", "`NETWORK` of the proxy (default: the network of the cluster)")
	f.StringSliceVar(&given.ips, "ip", nil, "IP `ADDRESS` of the proxy; may be repeated or comma-separated")
	f.StringToStringVar(&given.labels, "labels", nil, "labels of the proxy: comma-separated `KEY=VALUE` pairs")
	f.StringVar(&given.locality, "locality", "", "locality of the proxy: `REGION/ZONE/SUBZONE`")
	f.StringVar(&given.hub, "hub", "", "`HOST:PORT` or unix:PATH of the hub's xDS")
	f.StringVar(&o.HubName, "hub-name", "", "`NAME` that the hub's certificate must have (default: the host of --hub)")
	f.StringVar(&o.HubCA, "hub-ca", "", "`FILE` of the CAs that sign the hub's certificate")
	f.StringVar(&o.Certificate, "cert", "", "`FILE` of the proxy's certificate for the hub")
	f.StringVar(&o.Key, "key", "", "`FILE` of the key of --cert")
	f.StringVar(&given.admin, "admin", "127.0.0.1:15000", "loopback `ADDRESS`:PORT or unix:PATH of Envoy's admin, or none")
	f.BoolVar(&o.NoCapture, "no-capture", false, "the workload's connections are not redirected to the proxy")
	f.Uint16Var(&o.HTTPProxyPort, "http-proxy-port", 0, "`PORT` of an HTTP proxy on 127.0.0.1 (default: none)")
	f.BoolVar(&o.DNSCapture, "dns-capture", false, "the workload's DNS requests are redirected to the proxy")
	f.BoolVar(&o.NoIdentity, "no-identity", false, "the proxy gets no certificate from the hub and uses plain text")
	f.Uint64Var(&given.heapMiB, "max-heap", 1024, "heap in `MiB` at which the proxy sheds load")
	f.Uint64Var(&o.MaxConnections, "max-connections", 50_000, "`NUMBER` of connections that the proxy accepts at once")
	f.StringVar(&given.dir, "dir", "", "write envoy.yaml, and files for reloading certificates, into this `DIR`")
	f.Lookup("labels").DefValue = "" // help would show the empty list as [] otherwise
	return cmdutil.Finish(cmd)
}

func (g *bootstrapFlags) read() error {
	o := &g.options
	o.Kind, o.Labels = bootstrap.Kind(g.kind), g.labels
	o.MaxHeap, o.Secrets = g.heapMiB<<20, g.dir
	var wrong []error
	for _, text := range g.ips {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--ip: %q is not an IP address", text))
		}
		o.Addresses = append(o.Addresses, ip)
	}
	parts := append(strings.Split(g.locality, "/"), "", "")
	o.Region, o.Zone, o.SubZone = parts[0], parts[1], parts[2]
	var err error
	if g.hub != "" {
		o.Hub, err = endpoint(g.hub)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--hub: %w", err))
		}
	}
	if g.admin != "none" {
		o.Admin, err = endpoint(g.admin)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--admin: %w", err))
		}
	}
	for _, path := range []*string{&o.HubCA, &o.Certificate, &o.Key, &o.Secrets} {
		if *path != "" {
			*path, err = filepath.Abs(*path)
			if err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	return errors.Join(wrong...)
}

// endpoint reads HOST:PORT or unix:PATH.
func endpoint(text string) (bootstrap.Endpoint, error) {
	if path, socket := strings.CutPrefix(text, "unix:"); socket {
		return bootstrap.Endpoint{Path: path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return bootstrap.Endpoint{}, fmt.Errorf("%q is neither HOST:PORT nor unix:PATH", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return bootstrap.Endpoint{}, fmt.Errorf("%q has no port from 1 to 65535", text)
	}
	return bootstrap.Endpoint{Host: host, Port: uint16(number)}, nil
}

// wrongFlags is what the errors say, each flag once: a value that cannot be read is not also reported as missing.
func wrongFlags(errs ...error) string {
	var said, flags []string
	for _, err := range errs {
		if err == nil {
			continue
		}
		for line := range strings.Lines(err.Error()) {
			line = strings.TrimSuffix(line, "\n")
			flag, _, _ := strings.Cut(line, ":")
			if !slices.Contains(flags, flag) {
				said, flags = append(said, line), append(flags, flag)
			}
		}
	}
	return strings.Join(said, "; ")
}

func writeBootstrap(io cmdutil.Streams, given bootstrapFlags) error {
	unread := given.read()
	made, err := bootstrap.Build(given.options)
	if wrong := wrongFlags(unread, err); wrong != "" {
		return cmdutil.Usagef("%s", wrong)
	}
	text, err := bootstrap.YAML(made)
	if err != nil {
		return err
	}
	if given.dir == "" {
		_, err := io.Out.Write(text)
		return err
	}
	files, err := bootstrap.SecretFiles(given.options)
	if err != nil {
		return err
	}
	if files == nil {
		files = map[string][]byte{}
	}
	files["envoy.yaml"] = text
	if err := os.MkdirAll(given.dir, 0o755); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(given.dir, name), text, 0o644); err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
	}
	_, err = fmt.Fprintf(io.Out, "wrote %s; start it with: envoy -c %s\n", output.Counted(len(files), "file"),
		filepath.Join(given.dir, "envoy.yaml"))
	return err
}
