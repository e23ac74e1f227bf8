package node

import (
	"fmt"
	"unique"
)

// Extras are the parts of a facet that few facets have. A facet refers to its extras, which equal
// facets share, so that all others stay small: facets are copied for each build and are keys.
type Extras struct {
	Ports     string // where gateways listen for ports of their services: PORT=TARGET, sorted, joined by commas
	QUIC      string // where datagrams reach gateways that offer HTTP/3: as Ports; * where a port of TCP is; empty: nowhere
	Datagrams string // as Ports, for datagrams that are not of HTTP/3
	Priority  string // those of the proxy's labels by which endpoints are ordered: KEY=VALUE, sorted, joined by commas
	// Certificate is the secret with the certificate that gateways present to backends; Unusable: the Gateway has
	// one that cannot be used; empty: none is wanted.
	Certificate string
	// Sidecar names the one that says how the workload is reached, or which listeners it has for what it sends: NAMESPACE/NAME;
	// empty: none does.
	Sidecar string
	// Telemetry has the objects that say what is logged and traced: NAMESPACE/NAME, joined by
	// commas, the closest last. Traced is what the workload is called in traces; empty: it is not.
	Telemetry, Traced string
	Sampling          float64 // the share of traced requests that the proxy's own settings say, in per cent; 0: they do not
	Topology          Topology
	HTTP              HTTPSettings
	// Patches has the patches of EnvoyFilters for the proxies, in their order (PatchesOf).
	Patches string
}

// extrasRef refers to extras. It is zero if all of them are, so that equal facets are equal values.
type extrasRef struct{ handle unique.Handle[Extras] }

func (e Extras) ref() extrasRef {
	if e == (Extras{}) {
		return extrasRef{}
	}
	return extrasRef{unique.Make(e)}
}

// Extras are the facet's.
func (f Facet) Extras() Extras {
	if f.extras == (extrasRef{}) {
		return Extras{}
	}
	return f.extras.handle.Value()
}

// settings are those of the proxy itself, as text; empty: it has none.
func (e Extras) settings() string {
	s := Settings{Topology: e.Topology, HTTP: e.HTTP, Sampling: e.Sampling}
	if s == (Settings{}) {
		return ""
	}
	return fmt.Sprintf("%+v", s)
}

// edit changes the facet's extras.
func (f *Facet) edit(change func(*Extras)) {
	e := f.Extras()
	change(&e)
	f.extras = e.ref()
}
