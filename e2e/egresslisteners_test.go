package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestU57EgressListenersAreDialed has a workload behind Istio's own agent, unmodified, send requests to the listeners of its
// Sidecar that have addresses of their own: one to which connections are redirected, and a socket. They
// arrive with mutual TLS. Each listener leads to its own hosts, and the workload's other connections stay as they were.
func TestU57EgressListenersAreDialed(t *testing.T) {
	t.Parallel()
	w := newAgentFixture(t, "")
	dir := testbed.ShortDir(t)
	if err := os.Chmod(dir, 0o777); err != nil { // the proxy makes the socket
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "out.sock")
	(&hub{Hub: w.hub}).change(t, "apply", map[string]any{"manifests": []string{`
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: client, namespace: shop}
spec:
  workloadSelector: {labels: {app: client}}
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  egress:
  - {port: {number: 8080, protocol: HTTP}, bind: 10.96.7.7, hosts: [./` + webHost + `]}
  - {port: {number: 0, protocol: HTTP}, bind: "unix://` + socket + `", hosts: [./` + webHost + `]}
  - {hosts: ["./*"]}
`}})
	server, client := w.pod("server"), w.pod("client")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	server.agent.WaitReady(patience)
	client.agent.WaitReady(patience)
	bySocket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer bySocket.CloseIdleConnections()
	byNetwork := client.Client(nil)
	for name, c := range map[string]struct {
		client *http.Client
		at     string
		own    bool // it leads to its own hosts alone
	}{
		"an address that is captured":  {byNetwork, "10.96.7.7:8080", true},
		"a socket":                     {bySocket, "socket", true},
		"the service's address, as is": {byNetwork, "10.96.0.10:8080", false},
	} {
		testbed.WaitFor(t, patience, "an answer through "+name, func() error {
			return ask(c.client, c.at, webHost+":8080", http.StatusOK, "URI=spiffe://cluster.local/ns/shop/sa/client")
		})
		if !c.own {
			continue
		}
		if err := ask(c.client, c.at, "legacy.shop.svc.cluster.local:8080", http.StatusBadGateway, ""); err != nil {
			t.Errorf("another host through %s: %v", name, err)
		}
	}
	noPanic(t, w.hub)
}

// ask is an error unless a request for the host gets the status, and the server saw the caller.
func ask(client *http.Client, at, host string, want int, caller string) error {
	request, err := http.NewRequest(http.MethodGet, "http://"+at+"/", nil)
	if err != nil {
		return err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		return fmt.Errorf("status %d, want %d", response.StatusCode, want)
	}
	if want != http.StatusOK {
		return nil
	}
	var answer testbed.EchoAnswer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if got := answer.Header.Get("X-Forwarded-Client-Cert"); answer.Name != "server" || !strings.Contains(got, caller) {
		return fmt.Errorf("%q answers, and sees the caller %q", answer.Name, got)
	}
	return nil
}
