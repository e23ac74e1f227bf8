package xds

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// An open stream of a gateway follows the target port of its Service.
func TestR31StreamsFollowTheTargetPort(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		v := newSecretsHub(t, true).onSocket()
		target := func(number uint16) {
			shard := takingMutual(federation.ClientSideLB, "10.1.0.8")
			shard.Ports = []federation.Port{{Name: "https", Number: 443, Protocol: federation.HTTPS}}
			shard.Endpoints[0].TLSMode, shard.Endpoints[0].Ports = "", []federation.EndpointPort{{Name: "https", Number: number}}
			v.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("ingress"): shard}})
		}
		target(8443)
		c := v.client(xdstest.Options{Delta: delta, Node: ingress()})
		wantNames(t, c.get(xdstest.Request{Type: xdstest.LDS}), "0.0.0.0_8443")
		target(9443)
		wantNames(t, c.accept(xdstest.LDS), "0.0.0.0_9443")
	})
}
