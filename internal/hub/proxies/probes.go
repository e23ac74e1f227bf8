package proxies

import (
	"net/netip"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/probe"
)

// probers is how gateways that probe are heard.
type probers struct{ keeper *probe.Keeper }

// Found is part of xds.Probes.
func (p probers) Found(prober string, observer federation.NetworkID, reached map[netip.AddrPort]bool) {
	words := make([]probe.Word, 0, len(reached))
	for gateway, well := range reached {
		words = append(words, probe.Word{Prober: prober, Way: federation.VerdictKey{Observer: observer, Gateway: gateway}, Well: well})
	}
	p.keeper.Hear(words)
}

// Left is part of xds.Probes.
func (p probers) Left(prober string) { p.keeper.Left(prober) }
