package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

const (
	eventsType = "text/event-stream"
	// streamIdleTimeout is how long a stream may bring nothing at all; the hub sends a comment
	// every 15 s.
	streamIdleTimeout = time.Minute
	maxEvent          = 64 << 20
)

var (
	errSilent = errors.New("received nothing for one minute")
	errEnded  = errors.New("the stream ended before its end")
)

// Stream sends any operation, a subscription above all, and hands each answer to
// take as it came, errors of GraphQL included. It returns when the hub completes
// the operation, with nil, or with take's error, or with an UnreachableError when
// the stream breaks.
func (c *Client) Stream(ctx context.Context, request Request, take func([]byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(streamIdleTimeout, func() { cancel(errSilent) })
	defer watch.Stop()
	answer, err := c.post(ctx, request, eventsType)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // It was only read.
	if is, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); is != eventsType {
		return refused(c.options.URL, answer)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEvent)
	var next event
	for lines.Scan() {
		watch.Reset(streamIdleTimeout)
		if !next.add(lines.Bytes()) {
			continue
		}
		if next.name == "complete" {
			return nil
		}
		if next.name == "next" {
			if err := take(next.data); err != nil {
				return err
			}
		}
		next = event{}
	}
	if err := lines.Err(); err != nil {
		return unreachable(ctx, c.options.URL, err)
	}
	return unreachable(ctx, c.options.URL, errEnded)
}

// refused reads an answer that is not a stream.
func refused(server string, answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return &UnreachableError{Server: server, Err: err}
	}
	var said Answer
	if isJSON(answer) && json.Unmarshal(text, &said) == nil && said.err() != nil {
		return said.err()
	}
	return strange(server, answer.StatusCode, text)
}

// event is a server-sent event that is being read.
type event struct {
	name string
	data []byte
}

// add takes a line and tells whether it ends the event.
func (e *event) add(line []byte) (whole bool) {
	if len(line) == 0 {
		return e.name != ""
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.name = string(value)
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
	}
	return false
}

// dataOf reads the data of an answer into a value.
func dataOf(text []byte, into any) error {
	var answer Answer
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("reading an event: %w", err)
	}
	if err := answer.err(); err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("reading an event: %w", err)
	}
	return nil
}
