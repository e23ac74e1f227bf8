package registration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/registration"
)

// oddGroups are legal: one with the longest name that there may be, one whose template contradicts its metadata, and an empty one.
var oddGroups = `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: ` + longestGroup + `, namespace: shop}
spec: {metadata: {labels: {app: ledger}}, template: {serviceAccount: ledger}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: clash, namespace: shop}
spec:
  metadata: {labels: {app: ledger, topology.istio.io/network: of-label}}
  template:
    {serviceAccount: ledger, address: 192.0.2.1, network: of-template, locality: eu/a/b, weight: 7,
     labels: {app: other, security.istio.io/tlsMode: disabled}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: empty, namespace: shop}
spec: {metadata: {labels: {app: ledger}}, template: {}}
`

var longestGroup = strings.Repeat(strings.Repeat("a", 49)+".", 5) + "aaa"

// TestG87OddMachines: what machines of odd groups, or with odd addresses, become, and what is refused.
func TestG87OddMachines(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.apply(oddGroups)
		for name, c := range map[string]struct {
			change func(*registration.Proxy)
			want   string // the workload, or the reason of the refusal
		}{
			"an IPv6 address": {
				func(p *registration.Proxy) { p.Addresses = at("fd00::1") },
				"shop/ledger-fd00--1 fd00::1 default eu/a istio 0",
			},
			"an IPv6 address that ends with colons": {
				func(p *registration.Proxy) { p.Addresses = at("fd00::") },
				"shop/ledger-fd00 fd00:: default eu/a istio 0",
			},
			"an address of the loopback":   {func(p *registration.Proxy) { p.Addresses = at("127.0.0.1") }, "invalid"},
			"a link-local address":         {func(p *registration.Proxy) { p.Addresses = at("169.254.169.254") }, "invalid"},
			"a network that is not a name": {func(p *registration.Proxy) { p.Network = "Site_1" }, "invalid"},
			"the longest name": {
				func(p *registration.Proxy) { p.Group = longestGroup },
				"shop/" + (longestGroup + "-10.0.0.1")[9:] + " 10.0.0.1 default  istio 0",
			},
			"a group that contradicts itself": {
				func(p *registration.Proxy) { p.Group = "clash" },
				"shop/clash-10.0.0.1 10.0.0.1 of-template eu/a/b disabled 7",
			},
			"a proxy that knows better where it is": {
				func(p *registration.Proxy) {
					p.Group, p.Network, p.Locality = "clash", "own", federation.Locality{Region: "us"}
				},
				"shop/clash-10.0.0.1-own 10.0.0.1 own us disabled 7",
			},
			"another account of an empty group": {func(p *registration.Proxy) { p.Group = "empty" }, "other_identity"},
			"the default account of an empty group": {
				func(p *registration.Proxy) { p.Group, p.Account = "empty", "default" },
				"shop/empty-10.0.0.1 10.0.0.1 default  istio 0",
			},
		} {
			p := vm("10.0.0.1")
			c.change(&p)
			if got := became(w, p); got != c.want {
				t.Errorf("%s: it is %q, want %q", name, got, c.want)
			}
			pass(2 * registration.DefaultGrace)
		}
	})
}

// became tells of which workload the proxy is, or why it is none.
func became(w *fixture, p registration.Proxy) string {
	reason := func(err error) string {
		var refusal *registration.Refusal
		if !errors.As(err, &refusal) {
			return fmt.Sprint(err)
		}
		w.t.Log(refusal.Message)
		return string(refusal.Reason)
	}
	joined, err := w.keeper.Join(p)
	if err != nil {
		return reason(err)
	}
	defer joined.Leave()
	all := w.endpoints()
	if err := joined.Err(); err != nil {
		return reason(err)
	}
	if len(all) != 1 {
		return fmt.Sprintf("%d endpoints", len(all))
	}
	e := all[0]
	locality := strings.TrimRight(e.Locality.String(), "/")
	return fmt.Sprint(e.Workload, " ", e.Address, " ", e.Network, " ", locality, " ", e.TLSMode, " ", e.Weight)
}
