package transport

import (
	"cmp"
	"runtime"
	"time"
)

// StreamLimits bound what stays open: WebSockets and event streams. A zero field
// means its default. A caller is who its TLS certificate says; without one, the
// address that it comes from.
type StreamLimits struct {
	Streams               int           // WebSockets and event streams of all callers.
	Connections           int           // WebSockets of one caller with a certificate.
	ConnectionsPerAddress int           // WebSockets of one address, callers without a certificate.
	EventStreams          int           // Event streams of one caller or address.
	Subscriptions         int           // Operations of one WebSocket at the same time.
	Events                int           // Events of subscriptions of all callers that are executed at the same time.
	Message               int64         // Bytes of a message of a WebSocket; larger operations come by POST.
	Messages              int           // Messages and pings of one WebSocket in a second, over ten seconds.
	MessageTime           time.Duration // For a message to arrive once it has begun.
	InitTime              time.Duration // From the opening of a WebSocket to connection_init.
	KeepAlive             time.Duration // Between pings of the hub; a WebSocket that leaves one unanswered so long is closed.
	Stall                 time.Duration // For one answer to be taken by the client before its stream is ended.
	Drain                 time.Duration // For clients to go when the hub ends.
}

// DefaultStreamLimits returns the limits that hold where Options name none.
func DefaultStreamLimits() StreamLimits {
	return StreamLimits{
		Streams: 1000, Connections: 5, ConnectionsPerAddress: 100, EventStreams: 100, Subscriptions: 20, Events: runtime.GOMAXPROCS(0),
		Message: 64 << 10, Messages: 100, MessageTime: 10 * time.Second, InitTime: 5 * time.Second,
		KeepAlive: 15 * time.Second, Stall: 30 * time.Second, Drain: 3 * time.Second,
	}
}

func (l StreamLimits) withDefaults() StreamLimits {
	d := DefaultStreamLimits()
	return StreamLimits{
		Streams: cmp.Or(l.Streams, d.Streams), Connections: cmp.Or(l.Connections, d.Connections),
		ConnectionsPerAddress: cmp.Or(l.ConnectionsPerAddress, d.ConnectionsPerAddress),
		EventStreams:          cmp.Or(l.EventStreams, d.EventStreams), Subscriptions: cmp.Or(l.Subscriptions, d.Subscriptions),
		Events:  cmp.Or(l.Events, d.Events),
		Message: cmp.Or(l.Message, d.Message), Messages: cmp.Or(l.Messages, d.Messages),
		MessageTime: cmp.Or(l.MessageTime, d.MessageTime), InitTime: cmp.Or(l.InitTime, d.InitTime),
		KeepAlive: cmp.Or(l.KeepAlive, d.KeepAlive), Stall: cmp.Or(l.Stall, d.Stall), Drain: cmp.Or(l.Drain, d.Drain),
	}
}
