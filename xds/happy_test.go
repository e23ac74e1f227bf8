package xds

import (
	"testing"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

var fixedClusters = []string{"BlackHoleCluster", "InboundPassthroughCluster", "PassthroughCluster"}

func TestAProxyGetsAndFollowsItsConfiguration(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("web", 1))
		c := h.client(xdstest.Options{Delta: delta})
		clusters := c.get(xdstest.Request{Type: xdstest.CDS})
		wantNames(t, clusters, append([]string{cluster("web")}, fixedClusters...)...)
		first := c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web")}})
		wantNames(t, first, cluster("web"))
		listeners := c.get(xdstest.Request{Type: xdstest.LDS})
		wantNames(t, listeners, "0.0.0.0_80", "virtualInbound", "virtualOutbound")
		wantNames(t, c.get(xdstest.Request{Type: xdstest.RDS, Names: []string{"80"}}), "80")

		h.set(service("web", 1, 2))
		r := c.accept(xdstest.EDS)
		wantNames(t, r, cluster("web"))
		if r.Version == first.Version || r.Nonce == first.Nonce {
			t.Errorf("version %q → %q, nonce %q → %q", first.Version, r.Version, first.Nonce, r.Nonce)
		}
		h.eventually("everything is accepted", func(v *fleet.Value) bool {
			p := v.ByID(node("web-1").Id)
			return len(p) == 1 && p[0].Sync[xdstest.EDS].VersionAcked == r.Version && p[0].Sync[xdstest.EDS].State == fleet.Synced &&
				p[0].Sync[xdstest.CDS].VersionAcked == clusters.Version && p[0].Type == "sidecar"
		})

		h.set(service("shop", 3))
		r = c.accept(xdstest.CDS)
		want := []string{cluster("shop")}
		if !delta {
			want = append(want, cluster("web"))
			want = append(want, fixedClusters...)
		}
		wantNames(t, r, want...)
	})
}
