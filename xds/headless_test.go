package xds

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// headlessTCP is a headless service with a TCP port and n pods.
func headlessTCP(name string, pods ...int) serviceDelta {
	shard := httpShard(pods...)
	shard.Resolution, shard.Ports[0].Protocol = federation.Passthrough, federation.TCP
	return serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key(name): shard}}
}

// TestR81ListenersFollowThePodsOfAHeadlessService: a pod that comes has its listener,
// and the listeners of the others are not sent again.
func TestR81ListenersFollowThePodsOfAHeadlessService(t *testing.T) {
	h := newHub(t)
	h.set(headlessTCP("db", 1))
	c := h.client(xdstest.Options{Delta: true})
	wantNames(t, c.get(xdstest.Request{Type: xdstest.LDS}), "10.1.0.1_8080", "virtualInbound", "virtualOutbound")
	h.set(headlessTCP("db", 1, 2))
	wantNames(t, c.accept(xdstest.LDS), "10.1.0.2_8080")
	h.set(headlessTCP("db", 2))
	if r := c.accept(xdstest.LDS); len(r.Removed) != 1 || r.Removed[0] != "10.1.0.1_8080" {
		t.Errorf("after a pod is gone, %q are removed", r.Removed)
	}
}

// TestR82RoutesFollowExternalNames: one that comes, and one that goes.
func TestR82RoutesFollowExternalNames(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	c := h.client(xdstest.Options{Delta: true})
	c.get(xdstest.Request{Type: xdstest.CDS})
	c.get(xdstest.Request{Type: xdstest.LDS})
	c.get(xdstest.Request{Type: xdstest.RDS, Names: []string{"80"}})
	alias := &federation.Shard{Resolution: federation.DNSLB, MeshExternal: true, ExternalName: key("web").Hostname}
	h.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("alias"): alias}})
	wantNames(t, c.accept(xdstest.RDS), "80")
	h.set(serviceDelta{Gone: []federation.ServiceKey{key("alias")}})
	wantNames(t, c.accept(xdstest.RDS), "80")
}
