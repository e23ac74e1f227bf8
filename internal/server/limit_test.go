package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"isthmus.dev/isthmus/internal/clientaddr"
)

type refusals map[string]int

func (refusals) Connections(string, int)                  {}
func (r refusals) ConnectionRefused(_ string, why string) { r[why]++ }

// limitedServer accepts one connection for each that a test dials.
type limitedServer struct {
	net.Listener
	refused refusals
}

func limitedTo(t *testing.T, limits ConnectionLimits) *limitedServer {
	t.Helper()
	listener, err := listen(t, "127.0.0.1:0", ListenOptions{AnyPort: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &limitedServer{refused: refusals{}}
	s.Listener = Limit(listener, LimitOptions{
		Name: "graphql", Limits: limits, Metrics: s.refused,
		Log: clientaddr.NewLog(slog.New(slog.DiscardHandler)),
	})
	return s
}

func (s *limitedServer) dial(t *testing.T, from byte) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
	client, err := dialer.DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// connect returns both sides of a connection that was accepted.
func (s *limitedServer) connect(t *testing.T, from byte) (client, accepted net.Conn) {
	t.Helper()
	client = s.dial(t, from)
	accepted, err := s.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	return client, accepted
}

// closed reports whether the hub closed the connection.
func closed(t *testing.T, client net.Conn) bool {
	t.Helper()
	_ = client.SetReadDeadline(time.Unix(1, 0)) // what is there already, and nothing else
	_, err := client.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

func awaitClosed(t *testing.T, client net.Conn) {
	t.Helper()
	if n, err := client.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestR01PendingConnectionsMakeRoom: the oldest pending connection of the source that has the most makes room; what is
// established stays, and without a pending connection the new one is closed.
func TestR01PendingConnectionsMakeRoom(t *testing.T) {
	s := limitedTo(t, ConnectionLimits{Total: 5})
	used, accepted := s.connect(t, 2)
	Established(s.Listener, accepted.RemoteAddr())
	few, _ := s.connect(t, 3)
	oldest, _ := s.connect(t, 2)
	second, _ := s.connect(t, 2)
	third, _ := s.connect(t, 2)
	newcomer, accepted := s.connect(t, 4)
	awaitClosed(t, oldest)
	if s.refused[string(TooManyConnections)] != 1 {
		t.Errorf("counted %v", s.refused)
	}
	for name, client := range map[string]net.Conn{
		"established": used, "of another source": few, "second": second,
		"third": third, "new": newcomer,
	} {
		if closed(t, client) {
			t.Errorf("the %s connection is closed", name)
		}
	}
	if _, err := io.WriteString(accepted, "x"); err != nil {
		t.Errorf("the new connection: %v", err)
	}
}

// TestR01EstablishedConnectionsStay: with every place taken by one, a new connection is closed; a place that is given
// back, however often, is free once.
func TestR01EstablishedConnectionsStay(t *testing.T) {
	s := limitedTo(t, ConnectionLimits{Total: 2, PerSource: 1})
	first, accepted := s.connect(t, 2)
	Established(s.Listener, accepted.RemoteAddr())
	_, other := s.connect(t, 3)
	Established(s.Listener, other.RemoteAddr())
	tooMany, ofSource := s.dial(t, 4), s.dial(t, 2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := s.Accept(); err == nil {
			_ = c.Close()
		}
	}()
	awaitClosed(t, tooMany)
	awaitClosed(t, ofSource)
	if closed(t, first) {
		t.Error("the established connection is closed")
	}
	_ = accepted.Close()
	_ = accepted.Close()
	s.dial(t, 5)
	<-done
	if s.refused[string(TooManyConnections)] != 1 || s.refused[string(TooManyOfSource)] != 1 {
		t.Errorf("counted %v", s.refused)
	}
}
