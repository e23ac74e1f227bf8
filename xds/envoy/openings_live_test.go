package envoy_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"regexp"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// announces (K22): the server at port 8082 answers with what came before the request.
func announces(t *testing.T, caller *testbed.Namespace) {
	for host, want := range map[federation.Hostname]string{
		"announced.shop": `^V1 PROXY TCP4 10\.7\.0\.9 10\.96\.0\.14 [1-9]\d* 80$`,
		"binary.shop":    `^V2 PROXY TCP4 10\.7\.0\.9 10\.96\.0\.16 [1-9]\d* 80$`,
		"tunnelled.shop": `^CONNECT far\.example\.com:443 to far\.example\.com:443$`,
		"posted.shop":    `^POST / to far\.example\.com:443$`,
	} {
		t.Run("K22 "+string(host), func(t *testing.T) {
			r := caller.Get(liveURL(host))
			if r.Err != nil || r.Status != http.StatusOK || !regexp.MustCompile(want).Match(r.Body) {
				t.Errorf("the server sees %d %q %v, want %s", r.Status, r.Body, r.Err, want)
			}
		})
	}
}

// opens starts a server that answers a request with what opened its connection: a header of the
// PROXY protocol, or a request for a tunnel.
func opens(t *testing.T, ns *testbed.Namespace, address string) {
	t.Helper()
	listener, err := ns.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerWithOpening(conn)
		}
	}()
}

func answerWithOpening(conn net.Conn) {
	defer conn.Close()
	in, out, opening, err := readOpening(conn)
	if err != nil {
		return
	}
	if _, err := http.ReadRequest(in); err == nil {
		fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(opening), opening)
	}
}

// signature is how a header of version 2 of the PROXY protocol begins.
var signature = []byte("\r\n\r\n\x00\r\nQUIT\n")

// readOpening returns what opened the connection, and the streams of what follows.
func readOpening(conn net.Conn) (in *bufio.Reader, out io.Writer, opening string, err error) {
	in = bufio.NewReader(conn)
	start, err := in.Peek(len(signature))
	if err != nil {
		return nil, nil, "", err
	}
	if bytes.Equal(start, signature) {
		opening, err = readBinaryHeader(in)
		return in, conn, opening, err
	}
	if bytes.HasPrefix(start, []byte("PROXY ")) {
		line, err := in.ReadString('\n')
		return in, conn, "V1 " + string(bytes.TrimRight([]byte(line), "\r\n")), err
	}
	return readTunnel(in, conn)
}

// readBinaryHeader returns a header of TCP over IPv4 as version 1 writes it.
func readBinaryHeader(in io.Reader) (string, error) {
	var header struct {
		Signature       [12]byte
		Command, Family byte
		Length          uint16
		From, To        [4]byte
		FromPort, Port  uint16
	}
	err := binary.Read(in, binary.BigEndian, &header)
	if err == nil && (header.Command != 0x21 || header.Family != 0x11 || header.Length != 12) {
		return fmt.Sprintf("V2 %+v", header), nil
	}
	from, to := netip.AddrFrom4(header.From), netip.AddrFrom4(header.To)
	return fmt.Sprintf("V2 PROXY TCP4 %s %s %d %d", from, to, header.FromPort, header.Port), err
}

// readTunnel accepts a request for a tunnel. That of a POST is in the bodies of request and answer.
func readTunnel(in *bufio.Reader, conn net.Conn) (*bufio.Reader, io.Writer, string, error) {
	request, err := http.ReadRequest(in)
	if err != nil {
		return nil, nil, "", err
	}
	opening := fmt.Sprintf("%s %s to %s", request.Method, request.RequestURI, request.Host)
	if request.Method == http.MethodConnect {
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		return in, conn, opening, err
	}
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	return bufio.NewReader(request.Body), httputil.NewChunkedWriter(conn), opening, err
}
