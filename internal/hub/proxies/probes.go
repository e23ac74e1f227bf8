package proxies

import (
	"net/netip"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/probe"
)

// probers accepts the reports of gateways that probe.
type probers struct{ keeper *probe.Keeper }

// Found is part of xds.Probes.
func (p probers) Found(prober string, observer federation.NetworkID, reached map[netip.AddrPort]bool) {
	reports := make([]probe.Report, 0, len(reached))
	for gateway, well := range reached {
		reports = append(reports, probe.Report{
			Prober: prober, Path: federation.VerdictKey{Observer: observer, Gateway: gateway},
			Reachable: well,
		})
	}
	p.keeper.Report(reports)
}

// Left is part of xds.Probes.
func (p probers) Left(prober string) { p.keeper.Left(prober) }
