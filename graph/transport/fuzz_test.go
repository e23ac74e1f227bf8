package transport_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/graph/transport"
)

// codes are those with which the hub closes a WebSocket for what a message says.
var codes = []int{1009, 4400, 4401, 4409, 4429}

// FuzzWebSocketMessage sends a message of any content, before and after
// connection_init: the connection ends with one of the codes.
func FuzzWebSocketMessage(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `{}`, `null`, `[]`, initMessage, `{"type":"ping","payload":{}}`, `{"type":"pong"}`, `{"type":"complete","id":"1"}`,
		subscribe("1", "{hello}"), subscribe("1", "subscription{ticks}"), subscribe("1", "mutation{change}"), subscribe("1", "{"),
		`{"type":"subscribe","id":"1","payload":{"query":"query($n:Int){items(first:$n){totalCount}}","variables":{"n":1e400}}}`,
		`{"type":"subscribe","id":"\ud800","payload":{"query":"{hello}","extensions":{"a":[{}]}}}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, message []byte, initialised bool) {
		_, server := serve(t, transport.Options{})
		s := open(t, server)
		if initialised {
			s.say(initMessage)
			s.expect(`{"type":"connection_ack"}`)
		}
		s.say(string(message), `{"type":"end"}`) // The latter is closed with 4400, if nothing was before.
		if got := s.end(); !slices.Contains(codes, int(got.Code)) || got.Reason == "" {
			t.Errorf("closed with %d %q", got.Code, got.Reason)
		}
	})
}

// FuzzWebSocketFrames sends any bytes in place of frames and then nothing more:
// what the hub closes with, if it still can, is a code that may be sent and no
// fault of the hub. A client's own close has its code repeated.
func FuzzWebSocketFrames(f *testing.F) {
	for _, seed := range [][]byte{
		{},
		{0x81},
		{0x81, 0x80, 0, 0, 0, 0},
		{0x81, 0x00},
		{0xf1, 0x80, 0, 0, 0, 0},
		{0x80, 0x80, 0, 0, 0, 0},
		{0x83, 0x80, 0, 0, 0, 0},
		{0x89, 0x80, 0, 0, 0, 0},
		{0x09, 0x80, 0, 0, 0, 0},
		{0x88, 0x80, 0, 0, 0, 0},
		{0x88, 0x81, 0, 0, 0, 0, 1},
		{0x88, 0x82, 0, 0, 0, 0, 3, 0xe8},
		{0x01, 0x80, 0, 0, 0, 0, 0x81, 0x80, 0, 0, 0, 0},
		{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x81, 0x82, 0, 0, 0, 0, '{', '}'},
		{0x89, 0xfe, 0, 126},
		{0x82, 0x82, 0, 0, 0, 0, '{', '}'},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, frames []byte) {
		_, server := serve(t, transport.Options{})
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		connection.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(connection, "GET /graphql HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: "+wsProtocol+"\r\n\r\n")
		reader := bufio.NewReader(connection)
		if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(response, err)
		}
		connection.Write(frames)
		connection.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(reader) // What is not read of ours may reset the connection.
		for len(answer) >= 2 {
			opcode, length, rest := answer[0]&0xf, int(answer[1]), answer[2:]
			if length == 126 && len(rest) >= 2 {
				length, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
			}
			if length > len(rest) {
				return // Cut off.
			}
			if opcode == 8 && length >= 2 {
				code := int(binary.BigEndian.Uint16(rest))
				if code < 1000 || code > 1014 && code < 3000 || code == 1011 || code == 4500 || code > 4999 {
					t.Errorf("closed with %d %q", code, rest[2:length])
				}
			}
			answer = rest[length:]
		}
	})
}
