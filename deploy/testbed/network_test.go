package testbed

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// wantAnswer asks for a URL until the echo server of that name answers.
func wantAnswer(t *testing.T, from *Namespace, url, name string) EchoAnswer {
	t.Helper()
	var answer EchoAnswer
	WaitFor(t, time.Minute, name+" to answer "+url, func() error {
		response := from.Get(url)
		if err := response.failed(); err != nil {
			return err
		}
		answer = response.Echo(t)
		return nil
	})
	if answer.Name != name {
		t.Errorf("%s is answered by %s, want %s", url, answer.Name, name)
	}
	return answer
}

func TestNetworksWithTheSameAddressesAreApart(t *testing.T) {
	for _, side := range []string{"east", "west"} {
		network := NewNetwork(t, side, "10.1.0.0/24")
		server, client := NewNamespace(t, side+"-server"), NewNamespace(t, side+"-client")
		server.Join(network, "10.1.0.2")
		client.Join(network, "10.1.0.3")
		StartEcho(t, EchoOptions{Name: side, Namespace: server, HTTP: []int{80}})
		answer := wantAnswer(t, client, "http://10.1.0.2/path", side)
		if remote, err := netip.ParseAddrPort(answer.Remote); err != nil || remote.Addr() != client.Address() {
			t.Errorf("the server of %s sees the client as %s, want %s", side, answer.Remote, client.Address())
		}
	}
	lonely := NewNamespace(t, "lonely")
	if response := lonely.Get("http://10.1.0.2/"); response.Err == nil {
		t.Errorf("a namespace without a network got %d", response.Status)
	}
}

func TestNetworkCableIsCutAndMended(t *testing.T) {
	network := NewNetwork(t, "east", "fd00:1::/64")
	server, client := NewNamespace(t, "server"), NewNamespace(t, "client")
	server.Join(network, "fd00:1::2")
	client.Join(network, "fd00:1::3")
	StartEcho(t, EchoOptions{Name: "web", Namespace: server, Address: server.Address(), HTTP: []int{80}})
	wantAnswer(t, client, "http://[fd00:1::2]/", "web")
	server.Cut(network)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if conn, err := client.DialContext(ctx, "tcp", "[fd00:1::2]:80"); err == nil {
		conn.Close()
		t.Error("over a cut cable the client could connect")
	}
	server.Mend(network)
	wantAnswer(t, client, "http://[fd00:1::2]/", "web")
}

func TestNamespaceForwardsBetweenItsNetworks(t *testing.T) {
	east, west := NewNetwork(t, "east", "10.1.0.0/24"), NewNetwork(t, "west", "10.2.0.0/24")
	client, router, server := NewNamespace(t, "client"), NewNamespace(t, "router"), NewNamespace(t, "server")
	client.Join(east, "10.1.0.2")
	router.Join(east, "10.1.0.3")
	router.Join(west, "10.2.0.3")
	server.Join(west, "10.2.0.2")
	StartEcho(t, EchoOptions{Name: "web", Namespace: server, HTTP: []int{80}})
	client.Exec("ip", "route", "add", "10.2.0.0/24", "via", "10.1.0.3")
	server.Exec("ip", "route", "add", "10.1.0.0/24", "via", "10.2.0.3")
	router.Forward()
	wantAnswer(t, client, "http://10.2.0.2/", "web")
}

func TestEchoTellsWhatItSees(t *testing.T) {
	authority := NewAuthority(t, "mesh")
	config := authority.TLS(Subject{Name: "server", Hosts: []string{"127.0.0.1"}})
	echo := StartEcho(t, EchoOptions{Name: "web", HTTP: []int{0}, TCP: []int{0}})
	response := (*Namespace)(nil).Get("http://"+echo.HTTP[0].String()+"/x?status=503", "Host", "web.default", "X-Test", "1")
	answer := response.Echo(t)
	if response.Status != http.StatusServiceUnavailable || answer.Host != "web.default" || answer.Path != "/x" ||
		answer.Header.Get("X-Test") != "1" {
		t.Errorf("the answer is %d %+v", response.Status, answer)
	}

	secure := StartEcho(t, EchoOptions{Name: "secure", HTTP: []int{0}, TLS: config})
	request, err := http.NewRequest(http.MethodGet, "https://"+secure.HTTP[0].String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer := send((*Namespace)(nil).Client(authority.TLS(Subject{Name: "client"})), request).Echo(t); answer.Protocol != "HTTP/2.0" {
		t.Errorf("over TLS the protocol is %s, want HTTP/2.0", answer.Protocol)
	}

	conn, err := net.Dial("tcp", echo.TCP[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := exchange(t, conn, "hello"); got != "web hello" {
		t.Errorf("over TCP the answer is %q, want %q", got, "web hello")
	}
	echo.Stop()
	if response := (*Namespace)(nil).Get("http://" + echo.HTTP[0].String()); response.Err == nil ||
		!strings.Contains(response.Err.Error(), "refused") {
		t.Errorf("a stopped echo server answers %d, %v", response.Status, response.Err)
	}
}

func TestSniffingSeesWhatIsSent(t *testing.T) {
	network := NewNetwork(t, "open", "10.1.0.0/24")
	server, client, other := NewNamespace(t, "server"), NewNamespace(t, "client"), NewNamespace(t, "other")
	server.Join(network, "10.1.0.2")
	client.Join(network, "10.1.0.3")
	other.Join(network, "10.1.0.4")
	StartEcho(t, EchoOptions{Name: "server", Namespace: server, HTTP: []int{80}})
	near, far := server.Sniff(), other.Sniff()
	wantAnswer(t, client, "http://10.1.0.2/a-word", "server")
	if !near.Saw("GET /a-word") || far.Saw("GET /a-word") {
		t.Errorf("the server's link saw the request: %t, a third one: %t", near.Saw("GET /a-word"), far.Saw("GET /a-word"))
	}
}
