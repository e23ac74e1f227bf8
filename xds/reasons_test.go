package xds

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// What builders leave out is reported on its object as long as it is left out and an
// affected proxy is connected.
func TestR24ReasonsReachTheObjectThatCausedThem(t *testing.T) {
	counted := make(chan string, 100)
	h := newHub(t, func(o *Options) {
		o.Findings = func(code string, change int) { counted <- fmt.Sprintf("%s %+d", code, change) }
	})
	plain := tenantGateway("b", nil)
	plain.Spec.(*networking.Gateway).Servers = []*networking.Server{
		{Port: &networking.Port{Number: 8081, Name: "tcp", Protocol: "TCP"}, Hosts: []string{"*"}},
	}
	set := map[federation.ObjectKey]*federation.Object{}
	for _, o := range []*federation.Object{tenantGateway("a", simpleTLS()), plain, answering("a", "a0")} {
		o.Digest, set[o.Key] = o.Key.String(), o
	}
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: set}})
	loser := tenantKey("Gateway", "b")
	if found := h.server.Reasons(loser); len(found) != 0 {
		t.Errorf("without a proxy, %v", found)
	}
	n := router()
	n.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"istio": structpb.NewStringValue("ingress")}})
	c := h.client(xdstest.Options{Delta: true, Node: n})
	c.get(xdstest.Request{Type: xdstest.LDS})
	found := h.server.Reasons(loser)
	if len(found) != 1 || found[0].Code != "GATEWAY_CONFLICT" {
		t.Fatalf("the Gateway that loses its port has the reasons %v", found)
	}
	if got := <-counted; got != "GATEWAY_CONFLICT +1" {
		t.Errorf("counted %s", got)
	}
	if found := h.server.Reasons(tenantKey("Gateway", "a")); len(found) != 0 {
		t.Errorf("the Gateway that has its port has the reasons %v", found)
	}
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Gone: []federation.ObjectKey{tenantKey("Gateway", "a")}}})
	testbed.WaitFor(t, patience, "the conflict to be over", func() error {
		for _, r := range h.server.Reasons(loser) {
			if r.Code == "GATEWAY_CONFLICT" {
				return fmt.Errorf("%v", r)
			}
		}
		return nil
	})
	c.Close()
	testbed.WaitFor(t, patience, "nothing to be said once the proxy is gone", func() error {
		if found := h.server.Reasons(loser); len(found) > 0 {
			return fmt.Errorf("%v", found)
		}
		return nil
	})
}
