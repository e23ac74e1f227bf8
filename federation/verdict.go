package federation

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// VerdictKey names a way: from the gateways of one network to a gateway of
// another.
type VerdictKey struct {
	Observer NetworkID
	Gateway  netip.AddrPort
}

// Verdict is what the observer's gateways found when they probed a gateway. It is
// evidence of the data path alone: whether the hub can speak to a cluster says
// nothing about it, and the other way round.
type Verdict struct {
	Observer  NetworkID
	Reachable bool
	Since     time.Time // when it became so
}

func (v Verdict) equal(o Verdict) bool {
	return v.Observer == o.Observer && v.Reachable == o.Reachable && v.Since.Equal(o.Since)
}

// GatewayState says whether proxies of a network enter by a gateway, and why.
type GatewayState string

// The states.
const (
	Unprobed    GatewayState = "UNPROBED"    // used: it has not been probed from there
	Reachable   GatewayState = "REACHABLE"   // used
	Unreachable GatewayState = "UNREACHABLE" // not used
	LastResort  GatewayState = "LAST_RESORT" // found unreachable, and used all the same: so are all
	NotServing  GatewayState = "NOT_SERVING" // not used: it is for other networks
)

// Used reports whether proxies enter by the gateway.
func (s GatewayState) Used() bool { return s != Unreachable && s != NotServing }

// VerdictOf is what the observer found of the gateway; false: nothing yet.
func (g Gateway) VerdictOf(observer NetworkID) (Verdict, bool) {
	i := slices.IndexFunc(g.Verdicts, func(v Verdict) bool { return v.Observer == observer })
	if i < 0 {
		return Verdict{}, false
	}
	return g.Verdicts[i], true
}

// GatewayStatesFrom is what each of the network's Gateways is to proxies of the
// observer's network. Where none of those that serve it can be reached, all of
// them stay in use: a verdict may be wrong, and an empty set surely is.
func (n *Network) GatewayStatesFrom(observer NetworkID) []GatewayState {
	all := make([]GatewayState, len(n.Gateways))
	used := false
	for i, g := range n.Gateways {
		all[i] = g.stateFrom(observer)
		used = used || all[i].Used()
	}
	for i := range all {
		if !used && all[i] == Unreachable {
			all[i] = LastResort
		}
	}
	return all
}

// Unreachable reports whether the observer reaches none of the gateways that serve it,
// which are its last resort.
func (n *Network) Unreachable(observer NetworkID) bool {
	return slices.Contains(n.GatewayStatesFrom(observer), LastResort)
}

func (g Gateway) stateFrom(observer NetworkID) GatewayState {
	if !g.Serves(observer) {
		return NotServing
	}
	switch v, known := g.VerdictOf(observer); {
	case !known:
		return Unprobed
	case v.Reachable:
		return Reachable
	}
	return Unreachable
}

// verdictKey puts all verdicts of a gateway side by side.
func verdictKey(gateway netip.AddrPort, observer NetworkID) string {
	at := gateway.Addr().As16()
	return string(binary.BigEndian.AppendUint16(at[:], gateway.Port())) + string(observer)
}

// gatewayOfVerdict is what the keys of all verdicts of a gateway begin with.
func gatewayOfVerdict(key string) string { return key[:18] }

// applyVerdicts follows what was found of gateways.
func (x *networksTxn) applyVerdicts(delta Delta[VerdictKey, Verdict]) {
	for _, key := range delta.removed(x.probed()) {
		if _, had := x.verdicts.Delete(verdictKey(key.Gateway, key.Observer)); had {
			x.changes.any = true
		}
	}
	for key, now := range delta.Set {
		at := netip.AddrPortFrom(key.Gateway.Addr().Unmap(), key.Gateway.Port())
		now.Observer = key.Observer
		if was, had := x.verdicts.Get(verdictKey(at, key.Observer)); had && was.equal(now) {
			continue
		}
		x.verdicts.Set(verdictKey(at, key.Observer), now)
		x.changes.any = true
	}
}

func (x *networksTxn) probed() iter.Seq[VerdictKey] {
	return func(yield func(VerdictKey) bool) {
		x.verdicts.Walk(func(k string, v Verdict) bool {
			ip, _ := netip.AddrFromSlice([]byte(k[:16]))
			return !yield(VerdictKey{Observer: v.Observer, Gateway: netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16([]byte(k[16:18])))})
		})
	}
}

// String shows the way for people.
func (k VerdictKey) String() string {
	return strings.Join([]string{string(k.Observer), k.Gateway.String()}, " to ")
}
