package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

const shopGateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: istio-ingress}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: [shop.example.com], tls: {mode: SIMPLE, credentialName: shop-cert}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: everybody, namespace: istio-ingress}
spec:
  servers:
  - {port: {number: 8443, name: https, protocol: HTTPS}, hosts: [all.example.com], tls: {mode: SIMPLE, credentialName: shop-cert}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: gateway-1, namespace: istio-ingress}
spec: {address: 10.9.0.1, serviceAccount: gateway, labels: {istio: ingressgateway}}
`

// routerOf is a node that says that it is an ingress gateway.
func routerOf(t *testing.T, namespace, account string, addresses ...string) *corev3.Node {
	t.Helper()
	said, err := structpb.NewStruct(map[string]any{
		"CLUSTER_ID": "hub", "NAMESPACE": namespace, "SERVICE_ACCOUNT": account, "INSTANCE_IPS": strings.Join(addresses, ","),
		"LABELS": map[string]any{"istio": "ingressgateway"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &corev3.Node{Id: fmt.Sprintf("router~%s~%s-1.%s~%[3]s.svc.cluster.local", addresses[0], account, namespace), Metadata: said}
}

// TestR04CredentialsAreForGatewaysOfTheirNamespace: a certificate of the mesh and the
// claim to be a gateway buy no private key. Only a proxy that a registry knows gets
// those of its own namespace.
func TestR04CredentialsAreForGatewaysOfTheirNamespace(t *testing.T) {
	secrets, objects := t.TempDir(), t.TempDir()
	h := startSecureHub(t, "--secret-dir", secrets, "--config-dir", objects)
	write(t, filepath.Join(objects, "gateway.yaml"), shopGateway)
	cert, key := h.ca.Issue(testbed.Subject{Name: "shop", Hosts: []string{"shop.example.com"}})
	for _, dir := range []string{"istio-ingress/shop-cert", "flat"} {
		if err := os.MkdirAll(filepath.Join(secrets, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(secrets, dir, "tls.crt"), string(cert))
		write(t, filepath.Join(secrets, dir, "tls.key"), string(key))
	}
	h.await(t, "the gateway to have its key", func() error {
		if has, err := h.keyOf(t, routerOf(t, "istio-ingress", "gateway", "10.9.0.1"), "istio-ingress", "gateway"); err != nil || !has {
			return fmt.Errorf("it has the key: %t, %w", has, err)
		}
		return nil
	})
	for name, c := range map[string]struct {
		namespace, account string
		addresses          []string
		want               codes.Code
	}{
		"an address that nobody knows":       {"evil", "thief", []string{"1.2.3.4"}, codes.OK},
		"the same in the gateway's place":    {"istio-ingress", "thief", []string{"1.2.3.4"}, codes.OK},
		"the gateway's address":              {"istio-ingress", "thief", []string{"10.9.0.1"}, codes.PermissionDenied},
		"its own and the gateway's address":  {"istio-ingress", "thief", []string{"1.2.3.4", "10.9.0.1"}, codes.PermissionDenied},
		"the gateway's from another network": {"evil", "thief", []string{"1.2.3.4", "10.9.0.1"}, codes.PermissionDenied},
	} {
		has, err := h.keyOf(t, routerOf(t, c.namespace, c.account, c.addresses...), c.namespace, c.account)
		if has || status.Code(err) != c.want {
			t.Errorf("%s: it has the private key: %t, %v", name, has, err)
		}
	}
}

// keyOf reports whether the node gets the gateway's private key, when it shows a
// certificate of that account.
func (h secureHub) keyOf(t *testing.T, node *corev3.Node, namespace, account string) (bool, error) {
	t.Helper()
	who := h.ca.TLS(testbed.Subject{Name: "proxy", Hosts: []string{"spiffe://cluster.local/ns/" + namespace + "/sa/" + account}})
	conn, err := grpc.NewClient(h.xds, grpc.WithTransportCredentials(credentials.NewTLS(who)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := xdstest.Open(ctx, conn, xdstest.Options{Delta: true, Node: node})
	if err != nil {
		return false, err
	}
	defer c.Close()
	for _, r := range []xdstest.Request{
		{Type: xdstest.LDS},
		{Type: xdstest.SDS, Names: []string{"kubernetes://shop-cert", "kubernetes://flat"}},
	} {
		_ = c.Send(r) // a stream that is over says why below
		answer, err := c.Receive(ctx)
		if err != nil {
			return false, err
		}
		if len(answer.Resources) > 0 && answer.Type == xdstest.SDS {
			return true, nil
		}
		_ = c.Ack(answer)
	}
	return false, nil
}
