package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/coder/websocket"

	"isthmus.dev/isthmus/internal/text"
)

// closing is why a WebSocket ends. As an error it is the cause of its context's
// end.
type closing struct {
	code   websocket.StatusCode
	reason string
	by     string // Who ended it, where it was not the hub.
}

// Who ends a WebSocket beside the hub.
const (
	byClient = "client"
	byLoss   = "lost"
)

func (c closing) Error() string { return fmt.Sprintf("%d: %s", c.code, c.reason) }

// label is the word under which an Observer counts it.
func (c closing) label() string {
	if c.by != "" {
		return c.by
	}
	return strconv.Itoa(int(c.code))
}

// maxReason is what fits in a close frame.
const maxReason = 123

func closed(code websocket.StatusCode, reason string) closing {
	return closing{code: code, reason: text.Cut(reason, maxReason)}
}

func badRequest(text string) closing { return closed(4400, text) }

func unauthorized() closing { return closed(4401, "Unauthorized: connection_init comes first") }

func forbidden(text string) closing { return closed(4403, "Forbidden: "+text) }

func subprotocol() closing {
	return closed(4406, "Subprotocol not acceptable: ask for "+subprotocolName)
}

func noInit() closing { return closed(4408, "Connection initialisation timeout") }

func alreadyExists(id string) closing {
	return closed(4409, "Subscriber for "+bounded(id)+" already exists")
}

func initAgain() closing { return closed(4429, "Too many initialisation requests") }

func broken() closing { return closed(4500, "Internal server error") }

func goingAway() closing {
	return closed(websocket.StatusGoingAway, "the hub ends; connect again")
}

// tooSlow is for clients that may come back: they have missed something.
func tooSlow() closing {
	return closed(websocket.StatusTryAgainLater, "the client reads too slowly; connect again")
}

func noPong() closing {
	return closed(websocket.StatusTryAgainLater, "the client does not answer pings; connect again")
}

func tooBig(most int64) closing {
	return closed(websocket.StatusMessageTooBig, fmt.Sprintf("a message has at most %d bytes; send what is larger by POST", most))
}

func tooMany(most int) closing {
	return closed(websocket.StatusPolicyViolation, fmt.Sprintf("a client sends at most %d messages a second", most))
}

func tooLong() closing {
	return closed(websocket.StatusPolicyViolation, "a message took too long to arrive")
}

// closingOf tells from a failed read how the connection ended.
func closingOf(err error) closing {
	var network *net.OpError
	switch status := websocket.CloseStatus(err); {
	case status != -1:
		return closing{code: status, by: byClient}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return closing{code: websocket.StatusAbnormalClosure, by: byLoss}
	}
	return closed(websocket.StatusProtocolError, "a frame is not one of RFC 6455")
}
