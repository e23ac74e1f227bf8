package xds

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/xds/envoy"
)

// policyFor is a policy for the workloads that have the label, as configuration indexes it.
func policyFor(app, digest string) federation.Edit {
	key := federation.ObjectKey{Group: "security.istio.io", Kind: "AuthorizationPolicy", Namespace: "shop", Name: app}
	spec := &security.AuthorizationPolicy{
		Selector: &selection.WorkloadSelector{MatchLabels: map[string]string{"app": app}},
		Rules:    []*security.Rule{{From: []*security.Rule_From{{Source: &security.Source{Namespaces: []string{"shop"}}}}}},
	}
	o := &federation.Object{Key: key, Digest: digest, Names: []string{"workloads:shop/app=" + app}, ProxyLabels: []string{"app"}, Spec: spec}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: o}}}
}

// askingFor has the workloads that have the label ask a provider, which is the service web.shop.
func askingFor(app string) federation.Edit {
	e := policyFor(app, "1")
	for key, o := range e.Objects.Set {
		spec := &security.AuthorizationPolicy{
			Selector: o.Spec.(*security.AuthorizationPolicy).GetSelector(), Action: security.AuthorizationPolicy_CUSTOM, Rules: []*security.Rule{{}},
			ActionDetail: &security.AuthorizationPolicy_Provider{Provider: &security.AuthorizationPolicy_ExtensionProvider{Name: "authz"}},
		}
		delete(e.Objects.Set, key)
		key.Name, o.Spec, o.Key.Name = "ask-"+app, spec, "ask-"+app
		e.Objects.Set[key] = o
	}
	settings := &federation.MeshSettings{ExtensionProviders: []federation.ExtensionProvider{{
		Name: "authz", Config: []byte(`{"name": "authz", "envoyExtAuthzGrpc": {"service": "web.shop", "port": 80}}`),
	}}}
	e.Objects.Set[federation.MeshSettingsKey] = &federation.Object{Key: federation.MeshSettingsKey, Digest: "1", Spec: settings}
	return e
}

// tokensOf has the workloads that have the label verify the tokens of an issuer of their own.
func tokensOf(app string) federation.Edit {
	key := federation.ObjectKey{Group: "security.istio.io", Kind: "RequestAuthentication", Namespace: "shop", Name: app}
	spec := &security.RequestAuthentication{
		Selector: &selection.WorkloadSelector{MatchLabels: map[string]string{"app": app}},
		JwtRules: []*security.JWTRule{{Issuer: "https://" + app + ".example", JwksUri: "https://" + app + ".example/keys"}},
	}
	o := &federation.Object{Key: key, Digest: "1", Names: []string{"workloads:shop/app=" + app}, ProxyLabels: []string{"app"}, Spec: spec}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: o}}}
}

func workloadAt(i int) string { return fmt.Sprintf("10.1.%d.%d", i/250, i%250+1) }

// serving are the endpoints of a service that has all of the workloads.
func serving(workloads int) federation.Edit {
	shard := &federation.Shard{Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}}
	for i := range workloads {
		shard.Endpoints = append(shard.Endpoints, federation.Endpoint{
			Address: federation.IPAddress(netip.MustParseAddr(workloadAt(i))), Ports: []federation.EndpointPort{{Name: "http", Number: 8080}},
		})
	}
	return federation.Edit{
		Source: federation.ShardKey{Cluster: "c1", Provider: federation.Mock},
		Services: federation.Delta[federation.ServiceKey,
			*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{{Hostname: "web.shop", Namespace: "shop"}: shard}},
	}
}

// TestK03PoliciesCostWhatTheySelect: a policy that changes or comes has only the listeners of
// the workloads built again that it selects, and with a policy for each workload a change of
// endpoints has as few of them built again as without, those of providers and of issuers of
// tokens included.
func TestK03PoliciesCostWhatTheySelect(t *testing.T) {
	const workloads, kinds = 1000, 100
	affected := func(policies bool) (endpoints, changed, added int) {
		s, _ := federation.Next(federation.Empty(), federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
			Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Mock}},
		}})
		s, _ = federation.Next(s, serving(workloads))
		for i := range kinds - 1 {
			if policies {
				s, _ = federation.Next(s, policyFor(fmt.Sprint("a", i), "1"))
				s, _ = federation.Next(s, askingFor(fmt.Sprint("a", i)))
				s, _ = federation.Next(s, tokensOf(fmt.Sprint("a", i)))
			}
		}
		index := derive.NewIndex[string]()
		for i := range workloads {
			metadata, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"app": fmt.Sprint("a", i%kinds)}})
			if err != nil {
				t.Fatal(err)
			}
			n, err := envoy.ParseNode(&corev3.Node{
				Id:       fmt.Sprintf("sidecar~%s~w%d.shop~shop.svc.cluster.local", workloadAt(i), i),
				Metadata: metadata,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range envoy.Facets(envoy.ListenerType, n, s) {
				if f.Addresses == "" {
					continue // shared by proxies, and without policies
				}
				r := s.Read()
				m, _, err := envoy.Build(envoy.ListenerType, "virtualInbound", f, r)
				if m == nil || err != nil {
					t.Fatalf("%s has no inbound listener: %v", n.ID, err)
				}
				bytes, err := proto.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				of := policies && i%kinds < kinds-1
				if got := strings.Contains(string(bytes), "jwt_authn"); got != of {
					t.Fatalf("%s verifies tokens: %t, want %t", n.ID, got, of)
				}
				index.Replace(n.ID, federation.Deps{}, r.Deps())
			}
		}
		count := func(e federation.Edit) int {
			after, changes := federation.Next(s, e)
			found := map[string]bool{}
			for _, name := range index.Affected(changes, after) {
				found[name] = true
			}
			return len(found)
		}
		return count(serving(workloads - 1)), count(policyFor("a7", "2")), count(policyFor(fmt.Sprint("a", kinds-1), "1"))
	}
	without, _, _ := affected(false)
	with, changed, added := affected(true)
	if with != without || with > 1 {
		t.Errorf("a change of endpoints has %d listeners built again without policies, and %d with them", without, with)
	}
	if changed != workloads/kinds || added != workloads/kinds {
		t.Errorf("a changed policy has %d listeners built again and a new one %d, want %d", changed, added, workloads/kinds)
	}
}
