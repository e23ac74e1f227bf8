package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The opcodes of WebSocket frames.
const (
	frameContinuation = 0
	frameText         = 1
	frameBinary       = 2
	frameClose        = 8
	framePing         = 9
	maskBit           = 0x80
	finalBit          = 0x80
)

// upgrade is a handshake, which lacks the empty line at its end.
const upgrade = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n"

// frame is a masked frame, whose mask is zero.
func frame(opcode byte, payload string) []byte {
	out := []byte{finalBit | opcode}
	switch n := len(payload); {
	case n < 126:
		out = append(out, maskBit|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, maskBit|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, maskBit|127), uint64(n))
	}
	return append(append(out, 0, 0, 0, 0), payload...)
}

func text(messages ...string) (out []byte) {
	for _, message := range messages {
		out = append(out, frame(frameText, message)...)
	}
	return out
}

// many repeats a message, with its number in place of %d.
func many(n int, format string) (out []byte) {
	for i := range n {
		out = append(out, text(fmt.Sprintf(format, i))...)
	}
	return out
}

const (
	initialised = `{"type":"connection_init"}`
	watches     = `{"type":"subscribe","id":"%d","payload":{"query":"subscription{changes{__typename}}"}}`
)

var watching = text(initialised, fmt.Sprintf(watches, 0))

// afterWatching is the messages of a client that watches, and then the bytes.
func afterWatching(more ...byte) []byte { return append(bytes.Clone(watching), more...) }

// abuse is what a client sends, and how it goes on.
type abuse struct {
	raw   string // in place of a handshake
	sends []byte // after the handshake
	ends  string // the code with which the hub closes; empty: the client goes
	half  bool   // the client closes its side only, and waits for the hub to end
}

var abuses = map[string]abuse{
	"half a handshake":                {raw: upgrade[:len(upgrade)/2]},
	"a handshake without its end":     {raw: upgrade},
	"gone after the handshake":        {},
	"gone with a subscription":        {sends: watching},
	"gone in the middle of a frame":   {sends: afterWatching(frame(frameText, initialised)[:7]...)},
	"gone in the middle of a header":  {sends: afterWatching(finalBit|frameText, maskBit|127, 0, 0)},
	"half-closed before a message":    {half: true},
	"half-closed with a subscription": {sends: watching, half: true},
	"a binary frame":                  {sends: afterWatching(frame(frameBinary, initialised)...), ends: "4400"},
	"an unmasked frame":               {sends: afterWatching(finalBit|frameText, 2, '{', '}'), ends: "1002"},
	"a frame of 2^62 bytes": {sends: append(binary.BigEndian.AppendUint64(
		afterWatching(finalBit|frameText, maskBit|127), 1<<62), strings.Repeat("\x00", 80<<10)...), ends: "1009"},
	"a length with its highest bit": {sends: binary.BigEndian.AppendUint64(
		afterWatching(finalBit|frameText, maskBit|127), 1<<63), ends: "1002"},
	"reserved bits":                   {sends: afterWatching(0x70|finalBit|frameText, maskBit, 0, 0, 0, 0), ends: "1002"},
	"an unknown opcode":               {sends: afterWatching(frame(7, "")...), ends: "1002"},
	"a continuation of nothing":       {sends: afterWatching(frame(frameContinuation, "x")...), ends: "1002"},
	"a ping in fragments":             {sends: afterWatching(framePing, maskBit, 0, 0, 0, 0), ends: "1002"},
	"a ping that is too long":         {sends: afterWatching(frame(framePing, strings.Repeat("x", 126))...), ends: "1002"},
	"half a close code":               {sends: afterWatching(frame(frameClose, "x")...), ends: "1002"},
	"text that is not UTF-8":          {sends: afterWatching(frame(frameText, "\"\xff\"")...), ends: "4400"},
	"an ID twice":                     {sends: afterWatching(text(fmt.Sprintf(watches, 0))...), ends: "4409"},
	"an endless ping of WebSocket":    {sends: afterWatching(bytes.Repeat(frame(framePing, "x"), 5000)...), ends: "1008"},
	"an endless ping of the protocol": {sends: afterWatching(many(5000, `{"type":"ping","payload":{"n":%d}}`)...), ends: "1008"},
	"thousands of subscriptions":      {sends: append(text(initialised), many(5000, watches)...), ends: "1008"},
	"subscriptions that end at once": {sends: append(text(initialised), bytes.Repeat(
		text(fmt.Sprintf(watches, 7), `{"type":"complete","id":"7"}`), 2500)...), ends: "1008"},
}

// run sends what the client sends and returns the code with which the hub closed.
func (a abuse) run(socket string) (code string, err error) {
	raw, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if a.raw != "" {
		_, err := io.WriteString(raw, a.raw)
		return "", err
	}
	if _, err := io.WriteString(raw, upgrade+"\r\n"); err != nil {
		return "", err
	}
	from := bufio.NewReader(raw)
	answer, err := http.ReadResponse(from, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		return "", fmt.Errorf("the handshake: %v, %w", answer, err)
	}
	sent := make(chan struct{})
	go func() { // the hub may close before it has read all
		defer close(sent)
		_, _ = raw.Write(a.sends)
	}()
	defer func() { <-sent }()
	switch {
	case a.half:
		<-sent
		if err := raw.(*net.UnixConn).CloseWrite(); err != nil {
			return "", err
		}
	case a.ends == "":
		<-sent
		return "", nil
	}
	code, err = closeCode(from)
	_ = raw.Close()
	return code, err
}

// closeCode reads frames until the connection ends, and returns the code of the close frame; empty:
// there was none.
func closeCode(from *bufio.Reader) (code string, err error) {
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(from, head); err != nil {
			return code, nil // the connection has ended
		}
		length := int(head[1])
		if length == 126 {
			wide := make([]byte, 2)
			if _, err := io.ReadFull(from, wide); err != nil {
				return code, nil
			}
			length = int(binary.BigEndian.Uint16(wide))
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(from, payload); err != nil {
			return code, nil
		}
		if head[0]&0x0f == frameClose && length >= 2 {
			code = fmt.Sprint(binary.BigEndian.Uint16(payload))
		}
	}
}

// TestU44ClientsOfWebSocketLeaveNothing: however a client breaks off or breaks the rules, the hub ends
// the connection with the code of the documentation, and no goroutine, place or subscription stays.
func TestU44ClientsOfWebSocketLeaveNothing(t *testing.T) {
	t.Parallel()
	p := startProgram(t) // the tests beside this one have goroutines, too
	h := p.at()
	socket := filepath.Join(h.dir, "graphql")
	round := func() {
		var clients sync.WaitGroup
		for name, a := range abuses {
			clients.Go(func() {
				code, err := a.run(socket)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if code != a.ends && !a.half {
					t.Errorf("%s: the hub closes with %q, want %q", name, code, a.ends)
				}
			})
		}
		clients.Wait()
	}
	round() // what is made once is made now
	h.awaitMetrics(t, `isthmus_graphql_connections{transport="websocket"} 0`)
	quiet := h.goroutines(t)
	for range 4 {
		round()
	}
	h.awaitMetrics(t, `isthmus_graphql_connections{transport="websocket"} 0`, `isthmus_graphql_subscriptions{transport="websocket"} 0`)
	h.await(t, "the goroutines to end", func() error {
		if now := h.goroutines(t); now > quiet+len(abuses) { // one more for each is less than one for each round
			return fmt.Errorf("there are %d, before there were %d", now, quiet)
		}
		return nil
	})
	if _, err := h.names(); err != nil {
		t.Errorf("an operation after that: %v", err)
	}
	if strings.Contains(p.log.String(), "panicked") {
		t.Errorf("the hub panicked:\n%s", p.log.String())
	}
}
