package transport

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/99designs/gqlgen/graphql"
)

// The types of messages of graphql-transport-ws.
const (
	messageInit      = "connection_init"
	messageAck       = "connection_ack"
	messagePing      = "ping"
	messagePong      = "pong"
	messageSubscribe = "subscribe"
	messageNext      = "next"
	messageError     = "error"
	messageComplete  = "complete"
)

// received is a message of a client.
type received struct {
	kind    string
	id      string             // Of subscribe and complete.
	payload json.RawMessage    // Of connection_init, ping and pong: an object or nil.
	params  *graphql.RawParams // Of subscribe.
}

// sent is a message of the hub.
type sent struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// parseMessage reads one message. Everything that the protocol does not know is an
// error, whose text may be shown and repeats nothing of the input.
func parseMessage(data []byte) (received, error) {
	if err := checkJSON(data, len(data)); err != nil { // is short
		return received{}, errors.New("the message " + err.Error())
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return received{}, errors.New("the message is not a JSON object")
	}
	var m received
	if json.Unmarshal(members["type"], &m.kind) != nil {
		return received{}, errors.New("the message has no type")
	}
	var err error
	switch m.kind {
	case messageInit, messagePing, messagePong:
		m.payload, err = objectOrNothing(members["payload"])
	case messageSubscribe:
		m.id, err = idOf(members)
		if err == nil {
			m.params, err = paramsOf(members["payload"])
		}
	case messageComplete:
		m.id, err = idOf(members)
	default:
		err = errors.New("unknown message type")
	}
	return m, err
}

func idOf(members map[string]json.RawMessage) (string, error) {
	var id string
	if json.Unmarshal(members["id"], &id) != nil || id == "" {
		return "", errors.New("the id of the message is a string that is not empty")
	}
	return id, nil
}

// objectOrNothing returns nil for null and for what is absent.
func objectOrNothing(payload json.RawMessage) (json.RawMessage, error) {
	payload = bytes.TrimSpace(payload)
	switch {
	case len(payload) == 0, string(payload) == "null":
		return nil, nil
	case payload[0] != '{':
		return nil, errors.New("the payload of the message is an object")
	}
	return payload, nil
}

func paramsOf(payload json.RawMessage) (*graphql.RawParams, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil || members == nil {
		return nil, errors.New("the payload of subscribe is an object")
	}
	params, fault := fromMembers(members)
	if fault != nil {
		return nil, errors.New(fault.text)
	}
	return params, nil
}
