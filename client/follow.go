package client

import (
	"context"
	"errors"
	"time"

	"isthmus.dev/isthmus/internal/retry"
)

// Following says what of the mesh to follow.
type Following struct {
	After  string        // the cursor of the last event that was taken; "": from the start
	Filter *ChangeFilter // nil: everything
	// Objects has changed configuration objects come with their content and status.
	Objects bool
	// Lost is called when the stream broke, with the time of the next try; nil: not called.
	Lost func(err error, again time.Duration)
}

// Event is one event of what is followed.
type Event struct {
	Change
	// Begins is that with this event the whole picture starts again: forget all that
	// was there before. The picture is whole with the first event that has a cursor.
	Begins bool
}

const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Follow hands every event of the subscription changes to take, until the context
// ends or take returns an error, which it returns. A stream that breaks is opened
// again after the last cursor; where the hub does not know that, the whole
// picture comes once more.
func (c *Client) Follow(ctx context.Context, what Following, take func(Event) error) error {
	f := &changeStream{client: c, what: what, take: take, cursor: what.After}
	pauses := retry.Backoff{First: firstRetry, Longest: lastRetry}
	for {
		f.partial, f.progress = false, false
		err := f.once(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			err = &UnreachableError{Server: c.options.URL, Err: errEnded}
		case !Passes(err):
			return err
		}
		if f.progress {
			pauses.Reset()
		}
		pause := pauses.Next()
		if what.Lost != nil {
			what.Lost(err, pause)
		}
		if !retry.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// Passes reports whether asking again may have an answer in place of the error: the
// hub was not reached, or had none at the moment.
func Passes(err error) bool {
	var unreachable *UnreachableError
	code := CodeOf(err)
	return errors.As(err, &unreachable) || code == "UNAVAILABLE" || code == "RATE_LIMITED"
}

type changeStream struct {
	client   *Client
	what     Following
	take     func(Event) error
	cursor   string
	partial  bool // a whole picture has begun and is not whole yet
	progress bool // this stream brought something
}

// once follows one stream to its end.
func (f *changeStream) once(ctx context.Context) error {
	variables := struct {
		After   *string       `json:"after"`
		Filter  *ChangeFilter `json:"filter"`
		Objects bool          `json:"objects"`
	}{Filter: f.what.Filter, Objects: f.what.Objects}
	if f.cursor != "" {
		variables.After = &f.cursor
	}
	request := Request{Query: Changes_Operation, Variables: given{variables}, Operation: "Changes"}
	return f.client.Stream(ctx, request, func(text []byte) error {
		var data ChangesResponse
		if err := dataOf(text, &data); err != nil {
			return err
		}
		f.progress = true
		event := Event{Change: data.Changes, Begins: data.Changes.Resync && !f.partial}
		f.partial = data.Changes.Resync && data.Changes.Cursor == nil
		if err := f.take(event); err != nil {
			return err
		}
		if event.Cursor != nil {
			f.cursor = *event.Cursor
		}
		return nil
	})
}
