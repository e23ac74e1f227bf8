package docs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	grpcxds "google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"

	"isthmus.dev/isthmus/deploy/testbed"
)

// The bootstrap of the guide connects a gRPC client to a hub that wants mutual
// TLS, and all that the client asks for is accepted.
func TestGRPCClientConnectsAsInTheGuide(t *testing.T) {
	ca, operators, dir := testbed.NewAuthority(t, "ca"), testbed.NewAuthority(t, "operators"), shortDir(t)
	cert, key := ca.Issue(testbed.Subject{Name: "hub", Hosts: []string{hubHost, "127.0.0.1"}})
	at := netip.MustParseAddr("127.0.0.1")
	graphql := netip.AddrPortFrom(at, uint16(testbed.FreePort(t, nil, at)))
	xds := netip.AddrPortFrom(at, uint16(testbed.FreePort(t, nil, at)))
	h := &hub{url: "https://" + hubHost + ":" + fmt.Sprint(graphql.Port())}
	h.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: clientOf(operators, ca), DialContext: to(graphql.String()),
		DisableKeepAlives: true,
	}}
	h.start(t, dir, []string{
		"--config", write(t, filepath.Join(dir, "isthmus.yaml"),
			[]byte("clusters: [{id: c1, provider: Mock, network: n1}]\n"+meshRoots(t, dir, ca))),
		"--graphql-addr", graphql.String(), "--xds-addr", xds.String(),
		"--tls-cert", write(t, filepath.Join(dir, "hub.crt"), cert), "--tls-key", write(t, filepath.Join(dir, "hub.key"), key),
		"--tls-client-ca", write(t, filepath.Join(dir, "clients.crt"), operators.PEM),
	})
	conn := dialAsInTheGuide(t, ca, xds.String(), "hello.default.svc.cluster.local:80")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := conn.Invoke(ctx, "/a.B/C", &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a call that reaches nobody ends with %v", err)
	}
	var a struct {
		Data struct {
			Proxies struct {
				Nodes []struct {
					NodeID, UserAgent string
					Sync              []struct{ TypeURL, State, LastError string }
				}
			}
		}
	}
	h.await(t, "the client to have everything", `{ proxies { nodes { nodeID userAgent sync { typeUrl state lastError } } } }`,
		&a, func() error {
			nodes := a.Data.Proxies.Nodes
			if len(nodes) != 1 || !strings.HasPrefix(nodes[0].UserAgent, "gRPC") || len(nodes[0].Sync) == 0 {
				return fmt.Errorf("the hub shows %+v", nodes)
			}
			for _, s := range nodes[0].Sync {
				if s.State != "SYNCED" {
					return fmt.Errorf("%+v", s)
				}
			}
			return nil
		})
}

// dialAsInTheGuide makes a channel that reaches the hub, but no backend.
func dialAsInTheGuide(t *testing.T, ca *testbed.Authority, hub, target string) *grpc.ClientConn {
	t.Helper()
	dir := shortDir(t)
	cert, key := ca.Issue(testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/client"}})
	for name, content := range map[string][]byte{"proxy.crt": cert, "proxy.key": key, "hub-ca.crt": ca.PEM} {
		write(t, filepath.Join(dir, name), content)
	}
	found := blocksOf(read(t, "proxyless-grpc.md"), "json")
	if len(found) != 1 {
		t.Fatalf("the guide has %d bootstraps", len(found))
	}
	bootstrap := strings.NewReplacer("dns:///"+hubHost+":15010", hub, sidecarFiles, dir+"/").Replace(found[0])
	resolver, err := grpcxds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody is there") }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
