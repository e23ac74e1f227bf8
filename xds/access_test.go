package xds

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/transport"
	"isthmus.dev/isthmus/xds/xdstest"
)

// gatekeeper decides as the test says.
type gatekeeper struct {
	mu      sync.Mutex
	caller  Caller
	nobody  error // of Identify
	refused error // of Admit
	asked   int
	after   int // so many are admitted although refused is set
}

func (g *gatekeeper) Identify(context.Context) (Caller, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.caller
	c.Admit = g.admit
	return c, g.nobody
}

func (g *gatekeeper) admit(n envoy.Node) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	workload := "spiffe://mesh.example/ns/" + n.Namespace + "/sa/" + n.ServiceAccount
	if g.asked <= g.after {
		return workload, nil
	}
	return workload, g.refused
}

func (g *gatekeeper) refuse(err error) { g.refuseAfter(0, err) }

// refuseAfter refuses every caller after so many.
func (g *gatekeeper) refuseAfter(asked int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused, g.after = err, asked
}

// guarded is a hub with a gatekeeper; secrets go to its unix socket.
func guarded(t *testing.T, g *gatekeeper, change ...func(*Options)) *secretsHub {
	t.Helper()
	v := newSecretsHub(t, true)
	v.server.options.Access = g
	for _, f := range change {
		f(&v.server.options)
	}
	return v.onSocket()
}

// What a node says must be what was proven, before anything is answered.
func TestS18NothingIsAnsweredBeforeItIsAllowed(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		for name, c := range map[string]struct {
			keeper *gatekeeper
			want   codes.Code
		}{
			"nobody knows who it is": {&gatekeeper{nobody: status.Error(codes.Unauthenticated, "no")}, codes.Unauthenticated},
			"nobody can tell now":    {&gatekeeper{nobody: status.Error(codes.Unavailable, "later")}, codes.Unavailable},
			"another node":           {&gatekeeper{refused: errors.New("the node says c2")}, codes.PermissionDenied},
			"a proof that has ended": {&gatekeeper{caller: Caller{Ends: time.Now().Add(-time.Second)}}, codes.Unauthenticated},
		} {
			v := guarded(t, c.keeper)
			v.set(service("web", 1))
			client := v.client(xdstest.Options{Delta: delta})
			_ = client.Send(xdstest.Request{Type: xdstest.CDS}) // the stream may be over already
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if r, err := client.Receive(ctx); status.Code(err) != c.want {
				t.Errorf("%s: %q, %v", name, r.Names(), err)
			}
			cancel()
			if n := v.fleet.Latest().Count(); n != 0 {
				t.Errorf("%s: %d proxies are shown", name, n)
			}
			if denied := v.counts.of(Denied) == 1; denied != (c.want != codes.Unavailable) {
				t.Errorf("%s: %d denials are counted", name, v.counts.of(Denied))
			}
		}
	})
}

// A stream goes on only while it may (S11).
func TestS11StreamsAreLookedAtAgain(t *testing.T) {
	g := &gatekeeper{}
	often := func(o *Options) { now := *o.timing; now.access = time.Millisecond; o.timing = &now }
	v := guarded(t, g, often)
	v.set(service("web", 1))
	c := v.client(xdstest.Options{Delta: true})
	c.get(xdstest.Request{Type: xdstest.CDS})
	g.refuse(errors.New("the cluster is gone"))
	if err := c.ends(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "the cluster is gone") {
		t.Errorf("it ends with %v", err)
	}
}

func TestS11StreamsEndWithTheirProof(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		ends := time.Now().Add(300 * time.Millisecond)
		b := newBubbleWith(func(o *Options) { o.Access = &gatekeeper{caller: Caller{Ends: ends}} }, delta, service("web", 1))
		b.ask()
		b.ack(<-b.toPeer)
		if err := <-b.ended; status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "connect again") {
			t.Errorf("after the proof's end: %v", err)
		}
		if now := time.Now(); now.Before(ends) || now.After(ends.Add(time.Second)) {
			t.Errorf("it ends %s after the proof", now.Sub(ends))
		}
	})
}

func ownRef(authorities bool) SecretRef {
	return SecretRef{
		Cluster: "c1", Namespace: "shop", Authorities: authorities,
		Workload: "spiffe://mesh.example/ns/shop/sa/", Node: "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local",
	}
}

// Every proxy has its own certificate and roots, and nobody else's; they are
// made for the streams that request them, as long as they are open.
func TestS23ProxiesHaveTheirOwnSecrets(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		v := guarded(t, &gatekeeper{})
		v.secrets.keep(ownRef(false), "one")
		v.secrets.keep(ownRef(true), "roots")
		c := v.client(xdstest.Options{Delta: delta})
		c.get(xdstest.Request{Type: xdstest.CDS})
		if v.secrets.follows(ownRef(false)) != 0 {
			t.Error("a certificate is made for one who did not ask")
		}
		// One secret a response: Envoy refuses a response as a whole (R28).
		roots := c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{transport.OwnCertificate, transport.OwnRoots}})
		if got := secretIn(t, c.accept(xdstest.SDS),
			transport.OwnCertificate).GetTlsCertificate().GetPrivateKey().GetInlineBytes(); string(got) != "key one" {
			t.Errorf("the key is %q", got)
		}
		if got := secretIn(t, roots, transport.OwnRoots).GetValidationContext().GetTrustedCa().GetInlineBytes(); string(got) != "ca roots" {
			t.Errorf("the roots are %q", got)
		}
		v.secrets.keep(ownRef(false), "another")
		if r := c.accept(xdstest.SDS); string(secretIn(t, r,
			transport.OwnCertificate).GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "key another" {
			t.Error("a new certificate is not sent")
		}
		if n := v.counts.of(SecretRefused); n != 0 {
			t.Errorf("%d refusals are counted", n)
		}
		c.Close()
		awaitNone(t, v, ownRef(false))
	})
}

func awaitNone(t *testing.T, v *secretsHub, ref SecretRef) {
	t.Helper()
	testbed.WaitFor(t, patience, "the secret to be let go", func() error {
		if n := v.secrets.follows(ref); n != 0 {
			return fmt.Errorf("followed %d times", n)
		}
		return nil
	})
}

func TestS23OwnSecretsNeedAProof(t *testing.T) {
	v := newSecretsHub(t, true)
	v.secrets.keep(ownRef(false), "one") // nobody guards this hub: it knows no identities
	names := []string{transport.OwnCertificate, transport.OwnRoots}
	c := v.onSocket().client(xdstest.Options{Delta: true})
	r := c.get(xdstest.Request{Type: xdstest.SDS, Names: names})
	wantRemoved(t, r, names...)
	if n := v.counts.of(SecretRefused); n != 2 {
		t.Errorf("%d refusals are counted", n)
	}
	plain := newSecretsHub(t, true)
	plain.server.options.Access = &gatekeeper{}
	plain.secrets.keep(ownRef(false), "one")
	wantRemoved(t, plain.client(xdstest.Options{Delta: true}).get(xdstest.Request{Type: xdstest.SDS, Names: names}), names...)
}

// Each trust domain's roots count for its own certificates.
func TestRootsOfSeveralTrustDomains(t *testing.T) {
	s := transport.NewSecret(transport.OwnRoots,
		transport.KeyMaterial{Bundles: map[string][]byte{"b.example": []byte("b"), "a.example": []byte("a")}})
	custom := s.GetValidationContext().GetCustomValidatorConfig()
	if custom.GetName() != "envoy.tls.cert_validator.spiffe" || s.GetValidationContext().GetTrustedCa() != nil {
		t.Errorf("it is %v", s)
	}
}

// TestR34WhoeverProvedItselfHasItsOwnSecrets: by a token too, with which there is no
// certificate yet.
func TestR34WhoeverProvedItselfHasItsOwnSecrets(t *testing.T) {
	v := newSecretsHub(t, false)
	v.server.options.Access = &gatekeeper{caller: Caller{Proven: true}}
	v.secrets.keep(ownRef(false), "one")
	r := v.client(xdstest.Options{Delta: true}).get(xdstest.Request{Type: xdstest.SDS, Names: []string{transport.OwnCertificate}})
	if got := secretIn(t, r, transport.OwnCertificate).GetTlsCertificate().GetPrivateKey().GetInlineBytes(); string(got) != "key one" {
		t.Errorf("the key is %q", got)
	}
}

// TestR34GatewaysThatProvedThemselvesHaveTheirCredentials: by a token as by a
// certificate, if a registry knows them. One that proved nothing gets none.
func TestR34GatewaysThatProvedThemselvesHaveTheirCredentials(t *testing.T) {
	for _, proven := range []bool{true, false} {
		v := newSecretsHub(t, false)
		v.server.options.Access = &gatekeeper{caller: Caller{Proven: proven}}
		v.secrets.keep(SecretRef{Cluster: "c1", Namespace: "infra", Name: "web"}, "one")
		v.writer.Update(federation.Edit{Workloads: federation.Delta[federation.WorkloadKey,
			*federation.Workload]{Set: map[federation.WorkloadKey]*federation.Workload{
			{Namespace: "infra", Name: "gw"}: {
				Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.8")},
				Labels:    map[string]string{"istio": "ingress"},
			},
		}}})
		known := ingress()
		known.Id = "router~10.1.0.8~gw.infra~infra.svc.cluster.local"
		known.Metadata.Fields["NAMESPACE"] = structpb.NewStringValue("infra")
		c := v.client(xdstest.Options{Delta: true, Node: known})
		c.get(xdstest.Request{Type: xdstest.LDS})
		r := c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{web}})
		if got := slices.Contains(r.Names(), web); got != proven {
			t.Errorf("proven %v: it gets %q, -%q", proven, r.Names(), r.Removed)
		}
	}
}
