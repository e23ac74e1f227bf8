package xds

import (
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

const partner = "kubernetes://partner"

func partnerSecret(namespace string, authorities bool) SecretRef {
	return SecretRef{Cluster: "c1", Namespace: namespace, Name: "partner", Authorities: authorities}
}

// secured is a DestinationRule with a credential for connections to a host: for every caller, or for
// those with the label alone.
func secured(host string, selector map[string]string) *federation.Object {
	spec := &networking.DestinationRule{Host: host, TrafficPolicy: &networking.TrafficPolicy{
		// Each request has a connection, and with it what counts then.
		ConnectionPool: &networking.ConnectionPoolSettings{Http: &networking.ConnectionPoolSettings_HTTPSettings{MaxRequestsPerConnection: 1}},
		Tls: &networking.ClientTLSSettings{
			Mode: networking.ClientTLSSettings_MUTUAL, CredentialName: "partner",
			Sni: "vault.example.com", SubjectAltNames: []string{"vault.example.com"},
		},
	}}
	o := &federation.Object{
		Key: tenantKey("DestinationRule", "secured"), Names: []string{host}, Spec: spec, Digest: fmt.Sprint(selector),
	}
	for label := range selector {
		spec.WorkloadSelector, o.ProxyLabels = &selection.WorkloadSelector{MatchLabels: selector}, []string{label}
	}
	return o
}

func withLabel(n *corev3.Node, key, value string) *corev3.Node {
	n.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}})
	return n
}

// TestK54CredentialsOfRulesGoToWhomTheyAreFor: a rule without a selector is for proxies that a
// Gateway selects, one with a selector for the proxies that it selects. Each has the Secret of its
// own namespace.
func TestK54CredentialsOfRulesGoToWhomTheyAreFor(t *testing.T) {
	elsewhere := withLabel(router(), "istio", "ingress")
	elsewhere.Id = strings.ReplaceAll(elsewhere.Id, "shop", "bank")
	elsewhere.Metadata.Fields["NAMESPACE"] = structpb.NewStringValue("bank")
	for name, c := range map[string]struct {
		selector map[string]string
		node     *corev3.Node
		want     string // the key that comes; empty: none does
	}{
		"a gateway":                       {nil, ingress(), "key of shop"},
		"a gateway of another namespace":  {nil, elsewhere, "key of bank"},
		"what says that it is a gateway":  {nil, router(), ""},
		"a sidecar":                       {nil, node("a"), ""},
		"a sidecar that the rule selects": {map[string]string{"app": "a"}, withLabel(node("a"), "app", "a"), "key of shop"},
		"a sidecar that it does not":      {map[string]string{"app": "a"}, withLabel(node("b"), "app", "b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := newSecretsHub(t, true).onSocket()
			v.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("vault"): {Ports: []federation.Port{{
				Name:   "http",
				Number: 80, Protocol: federation.HTTP,
			}}}}})
			for _, namespace := range []string{"shop", "bank"} {
				v.secrets.keep(partnerSecret(namespace, false), "of "+namespace)
				v.secrets.keep(partnerSecret(namespace, true), "of "+namespace)
			}
			o := secured("vault.shop.svc.cluster.local", c.selector)
			v.config.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
				*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
			proxy := v.client(xdstest.Options{Delta: true, Node: c.node})
			r := proxy.get(xdstest.Request{Type: xdstest.SDS, Names: []string{partner, partner + "-cacert", "kubernetes://other"}})
			if c.want == "" {
				if len(r.Resources) > 0 {
					t.Errorf("it gets %q", r.Names())
				}
				return
			}
			wantNames(t, r, partner)
			wantNames(t, proxy.accept(xdstest.SDS), partner+"-cacert")
			if got := secretIn(t, r, partner).GetTlsCertificate().GetPrivateKey().GetInlineBytes(); string(got) != c.want {
				t.Errorf("the key is %q, want %q", got, c.want)
			}
		})
	}
}

// TestK54CredentialsOfRulesAreTakenBack when the rule is gone, and follow what it names.
func TestK54CredentialsOfRulesAreTakenBack(t *testing.T) {
	v := newSecretsHub(t, true).onSocket()
	v.set(serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key("vault"): {Ports: []federation.Port{{
		Name:   "http",
		Number: 80, Protocol: federation.HTTP,
	}}}}})
	v.secrets.keep(partnerSecret("shop", false), "one")
	o := secured("vault.shop.svc.cluster.local", nil)
	rules := func(d federation.Delta[federation.ObjectKey, *federation.Object]) {
		v.config.Update(federation.Edit{Objects: d})
	}
	c := v.client(xdstest.Options{Delta: true, Node: ingress()})
	c.get(xdstest.Request{Type: xdstest.SDS, Names: []string{partner}})
	rules(federation.Delta[federation.ObjectKey, *federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}})
	wantNames(t, c.accept(xdstest.SDS), partner)
	rules(federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{o.Key}})
	wantRemoved(t, c.accept(xdstest.SDS), partner)
}
