package server

import (
	"encoding/binary"
	"log/slog"
	"net"
	"testing"

	"isthmus.dev/isthmus/internal/clientaddr"
)

func frameOf(kind, flags byte, stream uint32, payload string) string {
	header := make([]byte, frameHeader)
	header[1], header[2] = byte(len(payload)>>8), byte(len(payload))
	header[3], header[4] = kind, flags
	binary.BigEndian.PutUint32(header[5:], stream)
	return string(header) + payload
}

func messageOf(length int) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(length))) + string(make([]byte, length))
}

// TestR07PartialMessages: what a connection is counted with, however its bytes are cut.
func TestR07PartialMessages(t *testing.T) {
	const kept = 128
	whole := messageOf(100)
	for _, size := range []int{1, 7, 1 << 20} {
		p := NewPartialMessages(1<<20, LimitOptions{Name: "xds", Metrics: refusals{}, Log: clientaddr.NewLog(slog.New(slog.DiscardHandler))})
		client, hub := net.Pipe()
		c := newCountedConn(hub, hub, p)
		for n, step := range []struct {
			in, out string
			want    int
		}{
			{in: clientPreface + frameOf(4, 0, 0, "") + frameOf(headersFrame, 0, 1, "headers")},
			{in: frameOf(dataFrame, 0, 1, whole)},
			{in: frameOf(dataFrame, 0, 1, whole[:3]), want: 3 + kept},
			{in: frameOf(dataFrame, 0, 1, whole[3:90]), want: 90 + 2*kept},
			{in: frameOf(headersFrame, 0, 3, "headers") + frameOf(dataFrame, flagPadded, 3, "\x04"+whole[:7]+"pads"), want: 90 + 12 + 3*kept},
			{in: frameOf(dataFrame, 0, 1, whole[90:]), want: 12 + kept},
			{in: frameOf(dataFrame, 0, 1, messageOf(0)+whole+whole[:5]), want: 12 + 115 + 2*kept},
			{out: frameOf(headersFrame, flagEndStream, 3, "trailers"), want: 115 + kept},
			{in: frameOf(dataFrame, 0, 3, whole[:50]), want: 115 + kept}, // of a stream that is over
			{in: frameOf(headersFrame, 0, 5, "headers") + frameOf(dataFrame, 0, 5, whole[:6]), want: 115 + 6 + 2*kept},
			{in: frameOf(resetFrame, 0, 1, "code"), want: 6 + kept},
			{in: frameOf(dataFrame, flagEndStream, 5, "x")},
			{in: frameOf(headersFrame, 0, 7, "headers") + frameOf(dataFrame, 0, 7, messageOf(1 << 14)[:2000]), want: 4096 + kept},
		} {
			c.pass(t, client, step.in, step.out, size)
			if p.bytes != step.want {
				t.Errorf("in pieces of %d: step %d: counted %d, want %d", size, n, p.bytes, step.want)
			}
		}
		_ = c.Close()
		if p.bytes != 0 || p.oldest.Len() != 0 {
			t.Errorf("a closed connection is counted with %d bytes", p.bytes)
		}
	}
}

// pass sends bytes to the hub and from it, in pieces.
func (c *countedConn) pass(t *testing.T, client net.Conn, in, out string, size int) {
	t.Helper()
	buffer := make([]byte, size)
	for ; in != ""; in = in[min(size, len(in)):] {
		piece := in[:min(size, len(in))]
		go func() { _, _ = client.Write([]byte(piece)) }()
		if n, err := c.Read(buffer); err != nil || n != len(piece) {
			t.Fatalf("read %d bytes: %v", n, err)
		}
	}
	for ; out != ""; out = out[min(size, len(out)):] {
		go func() { _, _ = client.Read(buffer) }()
		if _, err := c.Write([]byte(out[:min(size, len(out))])); err != nil {
			t.Fatal(err)
		}
	}
}

// TestR07OldestPartialMessages: beyond the limit, the connection that has had partial messages for the longest time is
// closed, whether it has few bytes or many; one whose messages were whole in between is not the oldest.
func TestR07OldestPartialMessages(t *testing.T) {
	counted := refusals{}
	p := NewPartialMessages(1000, LimitOptions{Name: "xds", Metrics: counted, Log: clientaddr.NewLog(slog.New(slog.DiscardHandler))})
	var all []*countedConn
	var clients []net.Conn
	for range 3 {
		client, hub := net.Pipe()
		c := newCountedConn(hub, hub, p)
		c.pass(t, client, clientPreface+frameOf(headersFrame, 0, 1, "headers")+frameOf(dataFrame, 0, 1, messageOf(200)[:150]), "", 1<<10)
		all, clients = append(all, c), append(clients, client)
	}
	all[0].pass(t, clients[0], frameOf(dataFrame, 0, 1, messageOf(200)[150:]), "", 1<<10)
	all[0].pass(t, clients[0], frameOf(dataFrame, 0, 1, messageOf(500)[:300]), "", 1<<10)
	if len(counted) != 0 {
		t.Fatalf("closed %v within the limit", counted)
	}
	all[2].pass(t, clients[2], frameOf(dataFrame, 0, 1, messageOf(200)[150:]+messageOf(500)[:200]), "", 1<<10)
	if _, err := clients[1].Write([]byte("x")); err == nil || counted[string(TooMuchOfMessages)] != 1 {
		t.Errorf("the oldest connection is open: %v", counted)
	}
	for _, open := range []*countedConn{all[0], all[2]} {
		if open.over {
			t.Error("another one is closed")
		}
	}
}
