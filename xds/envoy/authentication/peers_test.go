package authentication

import (
	"fmt"
	"testing"
	"time"

	security "istio.io/api/security/v1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// said is a PeerAuthentication; age is how many hours ago it was made.
type said struct {
	at     string // its namespace
	labels map[string]string
	mode   Mode
	ports  map[uint32]Mode
	age    int
	of     federation.ClusterID
}

func snapshotOf(all []said) *federation.Snapshot {
	e := federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{}}}
	for i, of := range all {
		spec := &security.PeerAuthentication{
			Mtls:          &security.PeerAuthentication_MutualTLS{Mode: of.mode},
			PortLevelMtls: map[uint32]*security.PeerAuthentication_MutualTLS{},
		}
		if of.labels != nil {
			spec.Selector = &selection.WorkloadSelector{MatchLabels: of.labels}
		}
		for port, mode := range of.ports {
			spec.PortLevelMtls[port] = &security.PeerAuthentication_MutualTLS{Mode: mode}
		}
		o := &federation.Object{
			Key:     federation.PeerAuthenticationKind.Key(of.at, fmt.Sprint("p", i)),
			Created: time.Unix(1_700_000_000, 0).Add(-time.Duration(of.age) * time.Hour), Digest: fmt.Sprint(i), Spec: spec,
		}
		o.Key.Cluster = of.of
		kind.Index(kind.Decoded{Object: o})
		e.Objects.Set[o.Key] = o
	}
	s, _ := federation.Next(federation.Empty(), e)
	return s
}

// TestK05TheClosestOldestModeCounts at proxies, and for those who call them.
func TestK05TheClosestOldestModeCounts(t *testing.T) {
	web := map[string]string{"app": "web"}
	for name, c := range map[string]struct {
		said       []said
		at         string // the workload's namespace, if not shop
		all, on80  Mode
		deciding80 int // index of the object that decides about port 80; -1: none
	}{
		"nothing":  {all: Permissive, on80: Permissive, deciding80: -1},
		"the mesh": {said: []said{{at: "istio-system", mode: Strict}}, all: Strict, on80: Strict},
		"of the mesh the oldest": {
			said: []said{{at: "istio-system", mode: Strict, age: 1}, {at: "istio-system", mode: Disable, age: 2}},
			all:  Disable, on80: Disable, deciding80: 1,
		},
		"the namespace before the mesh": {
			said: []said{{at: "istio-system", mode: Strict, age: 9}, {at: "shop", mode: Disable}},
			all:  Disable, on80: Disable, deciding80: 1,
		},
		"an unset mode is that above": {
			said: []said{{at: "istio-system", mode: Strict}, {at: "shop", mode: unset}},
			all:  Strict, on80: Strict,
		},
		"the oldest although unset": {
			said: []said{{at: "shop", mode: unset, age: 2}, {at: "shop", mode: Strict, age: 1}}, all: Permissive,
			on80: Permissive, deciding80: -1,
		},
		"the workload before all": {said: []said{
			{at: "istio-system", mode: Strict},
			{at: "shop", mode: Strict},
			{at: "shop", labels: web, mode: Disable},
		}, all: Disable, on80: Disable, deciding80: 2},
		"a port before the workload": {
			said: []said{{at: "shop", labels: web, mode: Strict, ports: map[uint32]Mode{80: Disable}}},
			all:  Strict, on80: Disable,
		},
		"a port alone": {said: []said{
			{at: "shop", mode: Strict},
			{at: "shop", labels: web, ports: map[uint32]Mode{80: Permissive}},
		}, all: Strict, on80: Permissive, deciding80: 1},
		"a port that is unset": {
			said: []said{{at: "shop", labels: web, mode: Strict, ports: map[uint32]Mode{80: unset}}},
			all:  Strict, on80: Strict,
		},
		"other labels": {
			said: []said{{at: "shop", labels: map[string]string{"app": "web", "v": "1"}, mode: Strict}},
			all:  Permissive, on80: Permissive, deciding80: -1,
		},
		"another namespace": {
			said: []said{{at: "bank", mode: Strict}, {at: "bank", labels: web, mode: Disable}}, all: Permissive,
			on80: Permissive, deciding80: -1,
		},
		"a selector in the root": {
			said: []said{{at: "istio-system", labels: web, mode: Strict}}, all: Permissive,
			on80: Permissive, deciding80: -1,
		},
		"a workload in the root": {at: "istio-system", said: []said{
			{at: "istio-system", mode: Strict},
			{at: "istio-system", labels: web, mode: Disable},
		}, all: Strict, on80: Strict},
		"of two for one workload": {said: []said{
			{at: "shop", labels: web, mode: Strict, age: 1, ports: map[uint32]Mode{80: Disable}},
			{at: "shop", labels: map[string]string{"v": "2"}, mode: Disable, age: 2},
		}, all: Disable, on80: Disable, deciding80: 1},
		"of the workload's cluster": {said: []said{{at: "shop", mode: Disable, of: "c1"}}, all: Disable, on80: Disable},
		"of another cluster": {
			said: []said{{at: "shop", mode: Disable, of: "c2"}}, all: Permissive,
			on80: Permissive, deciding80: -1,
		},
		"a port that cannot be, and this": {
			said: []said{{at: "shop", labels: web, ports: map[uint32]Mode{65616: Strict, 80: Disable}}},
			all:  Permissive, on80: Disable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := "shop"
			if c.at != "" {
				at = c.at
			}
			s := snapshotOf(c.said)
			modes := ModesOf(facet.Open(node.Facet{Scope: node.ScopeInbound, Namespace: at, Labels: "app=web,v=2", Objects: "c1"}, s.Read()))
			if modes.All.Mode != c.all || modes.Of(80).Mode != c.on80 {
				t.Errorf("the proxy takes %s, and %s on port 80; want %s and %s", modes.All.Mode, modes.Of(80).Mode, c.all, c.on80)
			}
			switch by := modes.Of(80).By; {
			case c.deciding80 < 0 && by != nil, c.deciding80 >= 0 && (by == nil || by.Key.Name != fmt.Sprint("p", c.deciding80)):
				t.Errorf("%v decides about port 80, want p%d", by, c.deciding80)
			}
			// A caller of another cluster, which does not see the objects for c1 itself.
			peers := NewPeers(s.Read(), "c9")
			e := &federation.Endpoint{Labels: map[string]string{"app": "web", "v": "2", "pod": "x"}, Workload: at + "/web-1"}
			plain := peers.PlainTextAlone(&federation.Service{Key: federation.ServiceKey{Namespace: "other"}},
				federation.ShardEndpoints{Shard: federation.ShardKey{Cluster: "c1"}}, e, 80)
			if (plain != nil) != (c.on80 == Disable) {
				t.Errorf("the caller speaks plain text because of %v; the mode is %s", plain, c.on80)
			}
		})
	}
}
