// Package proxies joins what the xDS server needs of the hub: who may open streams, the
// secrets that proxies get, the probes that gateways report, and the metrics.
package proxies

import (
	"log/slog"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/internal/probe"
	"isthmus.dev/isthmus/internal/registration"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/istiodebug"
	"isthmus.dev/isthmus/xds/mcp"
)

// Options are what proxies are served with.
type Options struct {
	Dev        bool // without authentication
	Snapshots  *federation.Aggregate
	Fleet      *fleet.Fleet
	Identities *identities.Identities
	Secrets    Secrets
	Probes     *probe.Keeper
	Members    *registration.Keeper
	// Configuration is read by Readers: SPIFFE IDs, or * for all that may open a stream.
	Configuration *mcp.Table
	Readers       []string
	Debug         *istiodebug.Debug // answers Inspectors
	Inspectors    Inspectors
	Limits        xds.Limits
	Ready         <-chan struct{} // no proxy is served before
	Metrics       *metrics.XDS
	Logger        *slog.Logger
}

// New makes the server of all proxies.
func New(o Options) *xds.Server {
	counted := traffic{o.Metrics}
	o.Metrics.Types(services())
	return xds.New(xds.Options{
		Snapshots: o.Snapshots, Fleet: o.Fleet, Ready: o.Ready, Metrics: counted, Traffic: counted,
		Logger: o.Logger, Secrets: o.Secrets, SecretsOnSocket: o.Dev, Access: access(o),
		Findings: o.Metrics.Findings, UnknownNames: o.Metrics.UnknownNames, Probes: probers{o.Probes}, Members: members{o.Members, o.Snapshots},
		Limits: o.Limits, Configuration: o.Configuration, Debug: o.Debug,
	})
}
