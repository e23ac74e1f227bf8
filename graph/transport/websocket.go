package transport

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// subprotocolName is the only one that is spoken. The older graphql-ws is not.
const subprotocolName = "graphql-transport-ws"

// asksForSocket reports whether a request wants to become a WebSocket. Other
// upgrades are not offered, and a request that would like one is answered without.
func asksForSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && hasToken(r.Header, "Upgrade", "websocket") && hasToken(r.Header, "Connection", "upgrade")
}

func hasToken(header http.Header, name, token string) bool {
	for part := range strings.SplitSeq(strings.Join(header.Values(name), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(part), token) {
			return true
		}
	}
	return false
}

// serveSocket opens a WebSocket and stays until it has ended. What is wrong with
// the request has an HTTP status; what is wrong with the protocol, a close code.
func (h *Handler) serveSocket(reply *replier, r *http.Request) {
	if fault := h.sameSite(r); fault != nil {
		reply.fault(fault)
		return
	}
	leave, fault := h.callers.enter(webSocket, r)
	if fault != nil {
		reply.fault(fault)
		return
	}
	defer leave()
	s := newSocket(h, r)
	wire := &hijacked{ResponseWriter: reply.w}
	ws, err := websocket.Accept(wire, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocolName}, OnPingReceived: s.pinged, OnPongReceived: func(ctx context.Context,
			payload []byte,
		) {
			s.pinged(ctx, payload)
		},
		InsecureSkipVerify: true, // sameSite has looked at the origin
	})
	if err != nil {
		fault := refuse(cmp.Or(wire.refused, http.StatusInternalServerError), BadUserInput,
			"the WebSocket handshake is not one of RFC 6455, version 13")
		if fault.status == http.StatusInternalServerError {
			fault = refuse(fault.status, Internal, internalText)
		}
		reply.fault(fault)
		return
	}
	reply.streamed = true
	ws.SetReadLimit(-1) // receive has its own.
	s.ws, s.cut = ws, func() { _ = wire.connection.Close() }
	h.count(func(o Observer) { o.Connections(webSocket, 1) })
	defer h.count(func(o Observer) { o.Connections(webSocket, -1) })
	defer whileTrusted(h.options.Trust, r, func(why error) { s.fail(forbidden(why.Error())) })()
	why := s.run(r.Context())
	h.count(func(o Observer) { o.Closed(why.label()) })
}

// hijacked keeps the connection below a WebSocket, which cannot be cut otherwise
// while the client's answer to a close frame is waited for. A refusal of the library,
// which is plain text, it keeps back.
type hijacked struct {
	http.ResponseWriter
	connection net.Conn
	refused    int // the status of the refusal, or 0
}

func (h *hijacked) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		h.ResponseWriter.WriteHeader(status)
		return
	}
	h.refused = status
}

func (h *hijacked) Write(text []byte) (int, error) { return len(text), nil }

func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("taking the connection over: %w", err)
	}
	h.connection = connection
	return connection, buffers, nil
}
