package xds

import (
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy"
)

// Any sequence of requests and changes leaves a stream that answers what is
// right: every name once, none refused, nothing without bytes.
func FuzzADS(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 16, 33, 50, 67, 84, 101, 118, 135, 152, 169, 186, 203, 220, 237, 254})
	f.Add([]byte{5, 64, 65, 128, 129, 200, 201, 202, 7, 9, 11, 13, 255, 254, 253})
	f.Add([]byte{1, 40, 130, 41, 131, 2, 3, 90, 91, 92, 93, 14, 15, 16})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) == 0 || len(steps) > 200 {
			return
		}
		d := newDrive(t, steps[0]&1 == 1, sidecarNode(t))
		d.set(service("a", 1))
		var sent []*response
		for _, step := range steps[1:] {
			for _, r := range append(fuzzStep(d, step, sent), d.due()...) {
				checkResponse(t, d, r)
				sent = append(sent, r)
			}
		}
	})
}

func fuzzStep(d *drive, step byte, sent []*response) []*response {
	q := request{kind: pushOrder[step&3]}
	names := []string{cluster("a"), cluster("b"), "*", "80", "nobody"}
	switch arg := int(step >> 4); step >> 2 & 3 {
	case 0:
		switch arg & 3 {
		case 0:
			d.set(service(string(rune('a'+arg>>2&1)), int(step)))
		case 1:
			d.set(tcpService("b", byte(arg)))
		case 2:
			d.set(gone("a"))
		case 3:
			d.set(gone("b"))
		}
		return nil
	case 1:
		return d.after(time.Duration(1<<arg) * time.Millisecond)
	case 2:
		if len(sent) > 0 {
			r := sent[len(sent)-1-arg%min(len(sent), 4)]
			q = d.answer(r)
			q.refused, q.errorText = arg&8 != 0, names[arg%2]
		}
	case 3:
		q.names = names[arg%5 : min(5, arg%5+arg%3)]
		if d.state.delta {
			q.unsubscribe = names[arg%3 : arg%3+arg%2]
			q.initial = map[string]string{names[arg%5]: "1"}
		} else if sub := d.state.subs[q.kind]; sub != nil {
			q.nonce = sub.responses.lastNonce
		}
	}
	return d.ask(q)
}

func checkResponse(t *testing.T, d *drive, r *response) {
	seen := map[string]bool{}
	for _, res := range r.resources {
		if seen[res.name] || !res.hasBody() {
			t.Fatalf("%s: %q twice or without bytes", r.kind, res.name)
		}
		seen[res.name] = true
	}
	for _, name := range r.removed {
		if seen[name] {
			t.Fatalf("%s: %q is sent and removed, or removed twice", r.kind, name)
		}
		seen[name] = true
	}
	sub := d.state.subs[r.kind]
	var sum digest
	live := 0
	for _, e := range sub.client.slots.all() {
		if e.sent != nil {
			sum = sum.plus(e.sent.hash)
			live += e.sent.weight()
		}
	}
	if sum != sub.client.sum || live != sub.client.live {
		t.Fatalf("%s: sum %s, live %d; from nothing %s, %d", r.kind, sub.client.sum, sub.client.live, sum, live)
	}
}

// Bytes that are not a request never panic.
func FuzzRequests(f *testing.F) {
	seed, _ := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: string(envoy.ClusterType), Node: node("a"), ResourceNames: []string{"*"}})
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var s discoveryv3.DiscoveryRequest
		var dl discoveryv3.DeltaDiscoveryRequest
		for delta, m := range map[bool]proto.Message{false: &s, true: &dl} {
			if proto.Unmarshal(data, m) != nil {
				continue
			}
			q := sotwRequest(&s)
			if delta {
				q = deltaRequest(&dl)
			}
			if q.check(DefaultLimits) == nil {
				newDrive(t, delta, sidecarNode(t)).ask(q)
			}
		}
	})
}
